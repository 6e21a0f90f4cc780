"""What is counted of RayJobs while a real operator works on them."""

from __future__ import annotations

import re

from muster.kube.resource import RAYJOBS
from muster.metrics import metrics_text
from tests.integration.observed import Observed
from tests.integration.operators import Operator, eventually
from tests.integration.ray_manifests import ray_job

pytest_plugins = ("tests.integration.controller_fixtures",)


async def test_a_job_is_counted_from_its_start_to_its_deletion(seen: Observed, operator: Operator) -> None:
    text = metrics_text(operator.controllers.figures)

    def lines(name: str) -> list[str]:
        return [line for line in text().decode().splitlines() if line.startswith(name) and 'name="demo"' in line]

    await seen.api.create(RAYJOBS, seen.namespace, ray_job("demo", "fail", backoffLimit=1))
    cluster = (await seen.job_state("demo", "Failed"))["rayClusterName"]

    async def counted() -> bool:
        attempts = lines("kuberay_job_execution_duration_seconds")
        ends = {(_label(line, "job_deployment_status"), _label(line, "retry_count")) for line in attempts}
        states = [_label(line, "deployment_status") for line in lines("kuberay_job_deployment_status")]
        return ends == {("Retrying", "0"), ("Failed", "1")} and states == ["Failed"]

    await eventually(counted, "both attempts and the state are counted")
    assert re.search(f'kuberay_cluster_info{{.*name="{cluster}"', text().decode())
    await seen.api.delete(RAYJOBS, seen.namespace, "demo")

    async def forgotten() -> bool:
        return not lines("kuberay_job")

    await eventually(forgotten, "nothing of it is counted any more")


def _label(line: str, name: str) -> str:
    """The value of a label of one line of the text."""
    found = re.search(rf'[{{,]{name}="([^"]*)"', line)
    return found[1] if found else ""
