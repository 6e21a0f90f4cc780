"""The script of `wait-gcs-ready`, run by a real shell with a stand-in for the `ray` command."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from muster.ray.init_container import wait_gcs_ready
from muster.ray.pod_options import PodOptions
from muster.ray.ray_node import RayNode
from tests.ray.ray_objects import ray_cluster, worker_group

RAY = """#!/bin/bash
echo "$@" >> {folder}/asked
echo "no connection"
test $(wc -l < {folder}/asked) -gt {failures}
"""


def run(folder: Path, *, failures: int) -> subprocess.CompletedProcess[str]:
    """Run the script where health checks fail that often and sleeping takes no time."""
    for name, text in {"ray": RAY.format(folder=folder, failures=failures), "sleep": "#!/bin/bash\n"}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    cluster = ray_cluster(workers=[worker_group()])
    node = RayNode.worker(cluster, cluster.spec.worker_groups[0], "cluster.local")
    container = wait_gcs_ready(node, {}, PodOptions())
    return subprocess.run(
        [*container["command"], *container["args"]],
        env={"PATH": f"{folder}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@pytest.mark.parametrize("failures", [0, 3])
def test_it_asks_the_head_until_it_is_healthy(tmp_path: Path, failures: int) -> None:
    done = run(tmp_path, failures=failures)
    assert (done.returncode, done.stderr) == (0, "")
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked == ["health-check --address demo-head-svc.default.svc.cluster.local:6379"] * (failures + 1)
    assert len(done.stdout.splitlines()) == failures


def test_rays_own_words_are_shown_only_after_two_minutes(tmp_path: Path) -> None:
    words = run(tmp_path, failures=26).stdout.splitlines()
    assert words.index("no connection") == 24
    assert words[23].startswith("115 s: ")
    assert words.count("no connection") == 2
