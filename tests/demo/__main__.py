"""Starts a local cluster, installs Muster, runs the sample RayJob and shows each step. See `make demo`."""

from __future__ import annotations

import argparse
import subprocess
import sys
import threading
import time

from kubernetes.dynamic.exceptions import DynamicApiError
from urllib3.exceptions import HTTPError

from tests.cluster.prerequisites import PrerequisiteError
from tests.cluster.process import CommandFailedError
from tests.cluster.progress import Steps
from tests.cluster.termination import end_as_if_interrupted, remember_interrupts
from tests.demo.narrator import Narrator
from tests.e2e import target as targets
from tests.e2e.api import Api, wait_until
from tests.e2e.install import InstallError, install
from tests.e2e.observer import Observer
from tests.e2e.rayjobs import TERMINAL, status_of, submitter_pods
from tests.e2e.target import Target
from tests.e2e.workloads import sample

JOB, NAMESPACE, GROUP = "demo-job", "default", "ray-demo-job-pg"
DEADLINE = 300.0
FAILURES = (
    PrerequisiteError,
    CommandFailedError,
    InstallError,
    AssertionError,
    OSError,
    subprocess.SubprocessError,
    DynamicApiError,
    HTTPError,
)
"""What the machine, the engine or the cluster may do to it. A TimeoutError is an OSError."""


def main() -> int:
    """Runs the demo; 0 when the RayJob SUCCEEDED, 1 with the reason otherwise, 130 when it is interrupted."""
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave the cluster up and print how to reach it")
    keep = parser.parse_args().keep
    steps = Steps()
    began = time.monotonic()
    try:
        with targets.kind(steps, name="muster", keep=keep) as target:
            with steps.step("Muster into the cluster"):
                install(target)
            succeeded = run_job(target)
            if keep:
                print(kept(target))
    except FAILURES as error:
        print(f"the demo failed: {str(error) or type(error).__name__}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    print(f"{'SUCCEEDED' if succeeded else 'the job did not succeed'} ({time.monotonic() - began:.0f} s in all)")
    return 0 if succeeded else 1


def kept(target: Target) -> str:
    """What to do with a cluster that stays."""
    return (
        f"\nThe cluster is up:\n  export KUBECONFIG={target.kubeconfig}\n  export PATH=$PATH:{target.kubectl.parent}\n"
        f"Its nodes have Ray as {target.ray_image}: a RayJob names that image. `make cluster-down` removes the cluster."
    )


def run_job(target: Target) -> bool:
    """Applies the sample and narrates until the job is over and its PodGroup Completed; whether it SUCCEEDED."""
    api = Api(target.kubeconfig)
    api.delete("RayJob", JOB, NAMESPACE)
    wait_until(lambda: api.get("PodGroup", GROUP, NAMESPACE) is None, "an earlier demo job is gone", within=60)
    narrator = Narrator(JOB, GROUP)
    with Observer(api, NAMESPACE, on_sighting=narrator) as observer:
        api.apply(sample("queue.yaml", ray_image=target.ray_image) + sample("rayjob.yaml", ray_image=target.ray_image))
        follower = threading.Thread(target=follow_output, args=(target, api, narrator), daemon=True)
        follower.start()
        status = wait_until(lambda: terminal_status(api), f"RayJob {JOB} is over", within=DEADLINE)
        wait_until(lambda: observer.phases(GROUP)[-1:] == ["Completed"], "PodGroup Completed", within=60)
        follower.join(timeout=10)
    if status["jobStatus"] != "SUCCEEDED":
        print(f"RayJob {JOB} ended {status.get('jobStatus')}: {status.get('reason')}: {status.get('message')}")
    return bool(status["jobStatus"] == "SUCCEEDED")


def terminal_status(api: Api) -> dict[str, str] | None:
    """The RayJob's status once it is over."""
    status = status_of(api, JOB, NAMESPACE)
    return status if status.get("jobDeploymentStatus") in TERMINAL else None


def follow_output(target: Target, api: Api, narrator: Narrator) -> None:
    """Prints the submitter's log, which is the job's own output, while it is written."""
    pod = wait_until(lambda: started_submitter(api), "the submitter runs", within=DEADLINE)
    command = [str(target.kubectl), f"--kubeconfig={target.kubeconfig}", "logs", "--follow", "-n", NAMESPACE, pod]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        for line in process.stdout or []:
            narrator.output(line.rstrip("\n"))


def started_submitter(api: Api) -> str | None:
    """The name of the submitter's pod once its container has started."""
    for pod in submitter_pods(api, JOB, NAMESPACE):
        if pod["status"].get("phase") not in (None, "Pending"):
            return str(pod["metadata"]["name"])
    return None


if __name__ == "__main__":
    end_as_if_interrupted()
    remember_interrupts()
    sys.exit(main())
