"""`muster submit`: hand a job to Ray, print its output, and end as the job ended. Runs in the submitter's pod.

Imports are kept light, and happen when the command runs: the pod has 64Mi.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from muster.ray.job_info import Submission
    from muster.ray.job_run import Patience
    from muster.ray.jobs_api import RayJobsClient
    from muster.ray.submitter_exit import SubmitterExit


def submit(
    submission: str = typer.Option(
        ...,
        envvar="MUSTER_SUBMISSION",
        metavar="JSON",
        help="The job as the Jobs API takes it: a JSON object with an entrypoint.",
    ),
    address: str = typer.Option(
        ..., envvar="RAY_DASHBOARD_ADDRESS", metavar="HOST:PORT", help="The dashboard: host:port, or a URL."
    ),
    submission_id: str = typer.Option(
        "", envvar="RAY_JOB_SUBMISSION_ID", metavar="ID", help="The job's id, in place of the one in the submission."
    ),
    dashboard_timeout: float = typer.Option(
        300.0, min=0, metavar="SECONDS", help="Seconds to wait for the dashboard to take the submission."
    ),
    outage_timeout: float = typer.Option(
        300.0, min=0, metavar="SECONDS", help="Seconds to bear a dashboard that does not answer while the job runs."
    ),
) -> None:
    """Submit a job to Ray, once, and follow it to its end.

    The job's output goes to stdout, what happens on the way to stderr. Exit status: 0 the job SUCCEEDED; 1 it FAILED,
    was STOPPED, or Ray lost it; 2 bad usage; 3 it could not be submitted; 4 contact was lost while it ran; 5 a defect
    of the submitter; 143 SIGTERM came. The job itself is never stopped.
    """
    import asyncio

    from muster.ray.job_info import Submission, UnexpectedDocument
    from muster.ray.job_run import Patience
    from muster.ray.jobs_api import RayJobsClient
    from muster.ray.submitter_exit import SubmitterExit

    try:
        job = Submission.from_json(submission, submission_id)
    except UnexpectedDocument as error:
        raise typer.BadParameter(str(error), param_hint="submission") from None
    try:
        client = RayJobsClient(address if "://" in address else f"http://{address}", os.environ.get("RAY_AUTH_TOKEN"))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="address") from None
    patience = Patience(dashboard=dashboard_timeout, outage=outage_timeout)
    try:
        status = asyncio.run(_run(job, client, patience))
    except Exception:  # Python would end with 1, which means that Ray's verdict is in
        traceback.print_exc()
        status = SubmitterExit.DEFECT
    raise typer.Exit(status)


async def _run(submission: Submission, client: RayJobsClient, patience: Patience) -> SubmitterExit:
    from muster.ray.job_info import JobStatus
    from muster.ray.job_run import CouldNotSubmitError, JobForgottenError, JobRun, LostContactError
    from muster.ray.submitter_exit import SubmitterExit

    _leave_on_signals(submission.submission_id)
    async with client:
        try:
            job = await JobRun(client, submission, write=_write, say=_say, patience=patience).run()
        except CouldNotSubmitError as error:
            _say(str(error))
            return SubmitterExit.NOT_SUBMITTED
        except LostContactError as error:
            _say(str(error))
            return SubmitterExit.LOST_CONTACT
        except JobForgottenError as error:
            _say(str(error))
            return SubmitterExit.JOB_FAILED
    return SubmitterExit.SUCCEEDED if job.status is JobStatus.SUCCEEDED else SubmitterExit.JOB_FAILED


def _leave_on_signals(submission_id: str) -> None:
    import asyncio

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _leave, number, submission_id)


def _leave(number: signal.Signals, submission_id: str) -> None:
    """Leave at once: there is nothing to tidy up, and a dead connection must not hold up the pod's end."""
    _say(f"{number.name}: leaving; job {submission_id} goes on without its log being followed")
    os._exit(128 + number)


def _write(text: str) -> None:
    # The log's characters as Ray has them, whatever the locale of the container makes of them.
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()


def _say(line: str) -> None:
    print(f"muster: {line}", file=sys.stderr, flush=True)
