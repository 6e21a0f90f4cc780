from __future__ import annotations

import pytest

from muster.kube.objects import ContainerStatus, Pod
from muster.ray.pod_health import is_running_and_ready, why_replace
from tests.ray.ray_objects import ended_container, pod, waiting_container


@pytest.mark.parametrize(
    ("phase", "ready", "expected"),
    [
        ("Running", "True", True),
        ("Running", "False", False),
        ("Running", "Unknown", False),
        ("Running", None, False),
        ("Pending", "True", False),
        ("Succeeded", "True", False),
    ],
)
def test_a_pod_is_ready_when_it_runs_and_says_so(phase: str, ready: str | None, expected: bool) -> None:
    assert is_running_and_ready(pod(phase=phase, ready=ready)) is expected


@pytest.mark.parametrize(
    ("candidate", "replaced"),
    [
        (pod(phase="Failed"), True),
        (pod(phase="Succeeded"), True),
        (pod(phase="Failed", restart_policy="Always"), True),
        (pod(containers=[ended_container()], restart_policy="Never"), True),
        (pod(containers=[ended_container()], restart_policy="Always"), False),
        (pod(containers=[ended_container()], restart_policy="OnFailure"), False),
        (pod(containers=[ended_container("sidecar")], restart_policy="Never"), False),
        (pod(containers=[ended_container("sidecar"), ended_container()], restart_policy="Never"), True),
        (pod(phase="Pending", containers=[ended_container()], restart_policy="Never"), False),
        (pod(containers=[waiting_container("CrashLoopBackOff")]), False),
        (pod(phase="Unknown", ready="Unknown"), False),
        (pod(phase="Pending", ready=None), False),
        (pod(), False),
    ],
)
def test_only_pods_that_cannot_come_back_are_replaced(candidate: Pod, replaced: bool) -> None:
    assert (why_replace(candidate) is not None) is replaced


def test_the_reason_for_replacing_names_what_ended() -> None:
    assert why_replace(pod(phase="Failed")) == "the pod has ended: Failed"
    oom: list[ContainerStatus] = [ended_container(reason="OOMKilled")]
    assert why_replace(pod(containers=oom, restart_policy="Never")) == (
        "container ray has ended and is not restarted: OOMKilled"
    )
