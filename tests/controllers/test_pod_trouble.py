"""Why a placed pod does not get to run, from what its kubelet reports."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from muster.controllers.pod_trouble import mark, trouble_of
from muster.kube.objects import Pod

STARTED = 1_767_225_600.0


def waiting(reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    return {"name": "ray", "state": {"waiting": {"reason": reason, "message": message}}, **more}


def crashed(code: int, restarts: int, state: str = "running", **more: Any) -> dict[str, Any]:
    ended = {"terminated": {"exitCode": code, "reason": "Error"}}
    now = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}} if state == "waiting" else {}
    last = {"state": ended} if state == "terminated" else {"state": now, "lastState": ended}
    return {"name": "ray", "restartCount": restarts, **last, **more}


def pod(
    *containers: dict[str, Any], init: tuple[dict[str, Any], ...] = (), restart: str = "Always", **metadata: Any
) -> Pod:
    labels = {"ray.io/node-type": "head"}
    raw = {
        "metadata": {"name": "demo-head", "labels": labels, "creationTimestamp": "2026-01-01T00:00:00Z", **metadata},
        "spec": {"restartPolicy": restart},
        "status": {"containerStatuses": list(containers), "initContainerStatuses": list(init)},
    }
    return msgspec.convert(raw, Pod)


@pytest.mark.parametrize(
    ("status", "reason", "hopeless_from"),
    [
        pytest.param(waiting("ErrImagePull", "not found"), "ImagePullBackOff", STARTED + 30, id="first pull"),
        pytest.param(waiting("ImagePullBackOff", "back-off"), "ImagePullBackOff", STARTED + 30, id="later pulls"),
        pytest.param(waiting("InvalidImageName"), "InvalidImageName", 0, id="no name of an image"),
        pytest.param(waiting("ErrImageNeverPull"), "ErrImageNeverPull", 0, id="an image that may not be pulled"),
        pytest.param(
            waiting("CreateContainerConfigError"), "CreateContainerConfigError", STARTED + 30, id="no such ConfigMap"
        ),
        pytest.param(crashed(1, 1, "waiting"), "CrashLoopBackOff", math.inf, id="crashed, and may do better"),
        pytest.param(crashed(1, 3, "waiting"), "CrashLoopBackOff", 0, id="crashes on"),
        pytest.param(crashed(1, 3, "terminated"), "CrashLoopBackOff", 0, id="has just crashed again"),
        pytest.param(crashed(1, 3), "CrashLoopBackOff", 0, id="runs at the moment"),
    ],
)
def test_what_does_not_start_is_told(status: dict[str, Any], reason: str, hopeless_from: float) -> None:
    found = trouble_of(pod(status))
    assert found is not None
    assert (found.reason, found.hopeless_from) == (reason, hopeless_from)
    assert found.sentence.startswith("Head pod demo-head: container ray ")


@pytest.mark.parametrize(
    "healthy",
    [
        pytest.param(pod(), id="not placed yet"),
        pytest.param(pod(waiting("ContainerCreating")), id="starting"),
        pytest.param(pod(waiting("PodInitializing")), id="initializing"),
        pytest.param(pod(crashed(1, 5, ready=True)), id="came up in the end"),
        pytest.param(pod(crashed(1, 1)), id="crashed once"),
        pytest.param(pod(crashed(0, 5)), id="ended well"),
        pytest.param(pod(waiting("ErrImagePull"), deletionTimestamp="2026-01-01T00:01:00Z"), id="on its way out"),
    ],
)
def test_what_may_start_yet_is_no_trouble(healthy: Pod) -> None:
    assert trouble_of(healthy) is None


def test_a_container_that_is_not_started_again_is_told_and_its_successor_may_do_better() -> None:
    killed = {"name": "ray", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}
    found = trouble_of(pod(killed, restart="Never"))
    assert found is not None
    assert found.sentence == "Head pod demo-head: container ray has ended: OOMKilled: exit code 137"
    assert found.hopeless_from == math.inf
    assert trouble_of(pod({**killed, "name": "ray-job-submitter"}, restart="Never")) is None
    assert trouble_of(pod(killed, restart="OnFailure")) is None


def test_an_init_container_holds_up_its_pod() -> None:
    found = trouble_of(pod(waiting("PodInitializing"), init=(waiting("ErrImagePull"),)))
    assert found is not None
    assert found.reason == "ImagePullBackOff"


def test_a_kubelets_next_try_is_no_news_and_its_last_is() -> None:
    assert mark(pod(waiting("ErrImagePull", "a"))) == mark(pod(waiting("ImagePullBackOff", "b")))
    assert mark(pod(crashed(1, 2, "waiting"))) != mark(pod(crashed(1, 3, "waiting")))
    assert mark(pod(waiting("ContainerCreating"))) == mark(None)


def test_a_pull_has_its_time_from_when_it_was_needed() -> None:
    done = {"terminated": {"exitCode": 0, "finishedAt": "2026-01-01T01:00:00Z"}}
    again = pod({**waiting("ErrImagePull"), "restartCount": 1, "lastState": done})
    after_init = pod(waiting("ErrImagePull"), init=({"name": "init", "state": done},))
    for found in (trouble_of(again), trouble_of(after_init)):
        assert found is not None
        assert found.hopeless_from == STARTED + 3600 + 30
