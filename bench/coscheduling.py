"""The scheduler `coscheduling`: kube-scheduler with the plugin for gangs of sigs.k8s.io/scheduler-plugins.

Only the benchmark asks for it. It is built from its Go module, into the user's cache, with what kube-scheduler was
compiled from.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.cluster import versions
from tests.cluster.cache import Cache, digest
from tests.cluster.gobuild import BUILD, COMPILER, ENVIRONMENT
from tests.cluster.prerequisites import missing_go, require
from tests.cluster.process import run
from tests.cluster.progress import Steps

MODULE = Path(__file__).with_name("coscheduling_module")
"""The folder of the Go module, with the program."""

MODULE_NAME = "muster.dev/coscheduling"
PLUGINS_MODULE = "sigs.k8s.io/scheduler-plugins"
API_VERSION = "scheduling.x-k8s.io/v1alpha1"
LABEL = "scheduling.x-k8s.io/pod-group"
PERMIT_SECONDS = 10
"""How long a gang's first members may wait for the others, as in the plugin's own example."""


def program(cache: Cache | None = None, steps: Steps | None = None) -> Path:
    """Return the program; build it if the cache lacks it.

    Raises PrerequisiteError when it has to be built and there is no Go, CommandFailedError when the build fails.
    """
    steps = steps or Steps()

    def build(folder: Path) -> None:
        require([missing_go()])
        with steps.step(f"Building coscheduling {versions.SCHEDULER_PLUGINS}"):
            run([*BUILD, "-o", f"{folder}/", "."], cwd=MODULE, environment={**COMPILER, **ENVIRONMENT})

    files = sorted(MODULE.glob("*.*"))
    key = digest(*BUILD, *(file.read_text() for file in files))
    folder = (cache or Cache(steps=steps)).entry("coscheduling", versions.SCHEDULER_PLUGINS, key, build=build)
    return folder / MODULE_NAME.rpartition("/")[2]


def crd() -> Path:
    """Return the file that defines the plugin's PodGroup, in Go's read-only module cache."""
    require([missing_go()])
    printed = run(["go", "mod", "download", "-json", PLUGINS_MODULE], cwd=MODULE, environment=ENVIRONMENT)
    return Path(json.loads(printed)["Dir"]) / "config" / "crd" / "bases" / "scheduling.x-k8s.io_podgroups.yaml"


def configuration(kubeconfig: Path, requests_a_second: int) -> dict[str, Any]:
    """Return the KubeSchedulerConfiguration with the plugin in it."""
    arguments = {"name": "Coscheduling", "args": {"permitWaitingTimeSeconds": PERMIT_SECONDS}}
    plugins = {
        "multiPoint": {"enabled": [{"name": "Coscheduling"}]},
        "queueSort": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]},
    }
    profile = {"schedulerName": "default-scheduler", "plugins": plugins, "pluginConfig": [arguments]}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": requests_a_second, "burst": requests_a_second},
        "profiles": [profile],
    }
