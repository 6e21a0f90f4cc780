"""The gangs that the reconcilers ask for count the pods that the reconcilers make."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from muster.controllers.context import ControllerOptions
from muster.controllers.raycluster.gang import ensure_gang
from muster.controllers.rayjob.gang import keep_gang
from tests.ray.ray_objects import ray_cluster, ray_job, template, worker_group

OURS = template(spec={"schedulerName": "ours"})


class Recorder:
    """A context with another name for the scheduler, that remembers the PodGroup it is asked for."""

    def __init__(self) -> None:
        self.options = ControllerOptions(submitter_image="muster:1", scheduler_name="ours")
        self.pod_groups = self
        self.queues = self
        self.members: dict[str, int] = {}

    async def ensure(self, manifest: dict[str, Any], uid: str) -> tuple[Any, bool]:
        self.members = manifest["spec"]["minTaskMember"]
        return SimpleNamespace(key="default/pg", metadata=SimpleNamespace(uid="pg")), True

    def say(self, *_: object, **__: object) -> None:
        """Say nothing."""


async def test_pods_that_name_our_scheduler_by_its_configured_name_are_members_of_a_cluster() -> None:
    context = Recorder()
    cluster = ray_cluster(head={"template": OURS}, workers=[worker_group(template=OURS)])
    await ensure_gang(cast("Any", context), cluster)
    assert context.members == {"headgroup": 1, "small": 1}


async def test_pods_that_name_our_scheduler_by_its_configured_name_are_members_of_a_job() -> None:
    context = Recorder()
    spec = ray_cluster(head={"template": OURS}, workers=[worker_group(template=OURS)]).dump()["spec"]
    look = SimpleNamespace(context=context, job=ray_job(entrypoint="x", rayClusterSpec=spec))
    await keep_gang(cast("Any", look), submitter_to_come=True)
    assert context.members == {"headgroup": 1, "small": 1}
