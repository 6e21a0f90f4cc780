"""SidecarMode: the submitter is a container of the head pod, and runs the same `muster submit` as the submitter's Job.

It is in Muster's own image, not in Ray's: whatever Python a user's image has, the job is submitted once, its log is
whole, and nothing that the user wrote meets a shell. It may start long before Ray listens, so it waits longer. Nothing
restarts it, nor the head pod: a head that came again would run the job a second time.
"""

from __future__ import annotations

import copy
from typing import Any, Final

from muster.api.rayjob import RayJob
from muster.ray.submitter import CONTAINER, submission_env, submitter_container

Spec = dict[str, Any]

_PATIENCE: Final = "--dashboard-timeout=900"
"""Seconds until Ray has to listen, from the start of the container, which comes after that of Ray's."""


def with_submitter(
    spec: Spec,
    job: RayJob,
    submission_id: str,
    *,
    image: str,
    image_pull_policy: str | None,
    dashboard_port: int,
    token_env: list[dict[str, Any]],
) -> Spec:
    """The cluster's spec (as in the RayCluster) with the submitter in its head; `spec` itself is left as it is.

    Raises ValueError as `submission` does, and for a submission that is too long for an environment variable.
    """
    spec = copy.deepcopy(spec)
    pod = spec["headGroupSpec"]["template"]["spec"]
    container = submitter_container({"name": CONTAINER}, image, image_pull_policy, alone=False)
    container["args"] = [_PATIENCE]
    container["env"] = [*submission_env(job, submission_id, f"127.0.0.1:{dashboard_port}"), *token_env]
    pod["containers"] = [*pod["containers"], container]
    pod["restartPolicy"] = "Never"
    return spec
