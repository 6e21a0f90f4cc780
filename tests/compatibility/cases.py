"""Which tests there are, by the names that KubeRay gives them.

Each part of a test is run on its own: a part that fails ends its whole test, since KubeRay's parts fail the test that
they belong to. So the parts have to be known by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_AUTOSCALERS = ("Create a RayCluster with autoscaling enabled", "Create a RayCluster with autoscaler v2 enabled")
_LIMITS = ("Scale up maxReplicas from 2 to 3", "Scale down maxReplicas from 2 to 1")
# Go numbers parts of one name.
_SPREADS = ("", "#01", "#02", "#03")

PARTS: dict[str, dict[str, tuple[str, ...]]] = {
    "e2erayjob": {
        "TestRayJob": (
            "Successful RayJob",
            "Failing RayJob without cluster shutdown after finished",
            "Failing submitter K8s Job",
            "Should transition to 'Complete' if the Ray job has stopped.",
            "RuntimeEnvYAML is not a valid YAML string",
            "RayJob name too long with 48 characters",
            "RayJob has passed ActiveDeadlineSeconds",
            "RayJob fails when head Pod is deleted when job is running",
            "RayJob should be created, but not updated when managed externally",
            "RayJob has exceed SubmitterFinishedTimeout",
        ),
        "TestRayJobWithClusterSelector": (
            "Successful RayJob",
            "Failing RayJob",
            "RayJob should be created but not to be updated when managed externally",
            "RayJob should not be created due to managedBy invalid value",
        ),
        "TestRayJobSuspend": (
            "Suspend the RayJob when its status is 'Running', and then resume it.",
            "Create a suspended RayJob, and then resume it.",
        ),
        "TestRayJobLightWeightMode": (
            "Successful RayJob",
            "Failing RayJob without cluster shutdown after finished",
            "Should transition to 'Complete' if the Ray job has stopped.",
        ),
        "TestRayJobSidecarMode": (
            "Successful RayJob",
            "Failing RayJob without cluster shutdown after finished",
            "Should transition to 'Complete' if the Ray job has stopped.",
            "RayJob fails when head Pod is deleted when job is running",
        ),
        "TestRayJobRetry": (
            "Failing RayJob without cluster shutdown after finished",
            "Failing submitter K8s Job",
            "RayJob has passed ActiveDeadlineSeconds",
            "Failing RayJob with HttpMode submission mode",
            "Failing RayJob with SidecarMode submission mode",
        ),
        "TestRayJobRecovery": ("RayJob should recover after pod deletion",),
        "TestDeletionStrategy": (
            "DeletionRules with DeleteWorkers policy should delete only worker pods",
            "DeletionRules with DeleteCluster policy should delete entire cluster",
            "DeletionRules with DeleteSelf policy should delete RayJob and cluster",
            "DeletionRules with DeleteNone policy should preserve all resources",
            "Multi-stage deletion should execute in TTL order: Workers->Cluster->Self",
            "Legacy OnSuccess DeleteCluster should still work",
        ),
    },
    "e2e": {
        "TestRayClusterManagedBy": (
            "Successful creation of cluster, managed by Kuberay Operator",
            "Creation of cluster skipped, managed by Kueue",
            "Failed creation of cluster, managed by external non supported controller",
        ),
        "TestRayClusterSuspend": (),
        "TestRayClusterWithResourceQuota": (),
        "TestRayClusterScalingDown": (),
        "TestRayClusterSingleHostMultiSlice": (),
        "TestRayClusterMultiHostMultiSlice": (),
        "TestRayClusterGCSFaultTolerance": ("Test Detached Actor",),
        "TestGcsFaultToleranceOptions": (
            "No Redis Password",
            "Redis Password",
            "Redis Password and Username",
            "Redis Password In Secret",
            "Long RayCluster Name",
        ),
        "TestGcsFaultToleranceAnnotations": (
            "GCS FT without redis password",
            "GCS FT with redis password in ray start params",
            "GCS FT with redis password in ray start params referring to env",
            "GCS FT with storage namespace",
        ),
    },
    "e2eautoscaler": {
        "TestRayClusterAutoscaler": _AUTOSCALERS,
        "TestRayClusterAutoscalerWithFakeGPU": _AUTOSCALERS,
        "TestRayClusterAutoscalerWithCustomResource": _AUTOSCALERS,
        "TestRayClusterAutoscalerWithDesiredState": _AUTOSCALERS,
        "TestRayClusterAutoscalerMinReplicasUpdate": _AUTOSCALERS,
        "TestRayClusterAutoscalerMaxReplicasUpdate": tuple(f"{a}({n})" for a in _AUTOSCALERS for n in _LIMITS),
        "TestRayClusterAutoscalerV2IdleTimeout": _AUTOSCALERS[1:],
        "TestRayClusterAutoscalerGPUNodesForCPUTasks": _AUTOSCALERS,
        "TestRayClusterAutoscalerDoNotRemoveIdlesForPlacementGroup": _AUTOSCALERS,
        "TestRayClusterAutoscalerSDKRequestResources": _AUTOSCALERS,
        "TestRayClusterAutoscalerAddNewWorkerGroup": _AUTOSCALERS,
        "TestRayClusterAutoscalerPlacementGroup": tuple(f"{a}{n}" for a in _AUTOSCALERS for n in _SPREADS),
        "TestRayClusterAutoscalerGCSFT": _AUTOSCALERS,
    },
}
"""Package below KubeRay's folder `test`, test, and its parts; a test without parts is run whole."""


@dataclass(frozen=True, slots=True)
class Case:
    """One part of a test, or a test that has none."""

    package: str
    test: str
    part: str = ""

    @property
    def name(self) -> str:
        """The name that Go prints: `TestRayJob/Successful_RayJob`."""
        return f"{self.test}/{self.part.replace(' ', '_')}" if self.part else self.test

    @property
    def pattern(self) -> str:
        """What `-test.run` has to be given to run this and nothing else."""
        return "/".join(f"^{_quoted(element)}$" for element in self.name.split("/"))


def cases() -> list[Case]:
    """All of them, in the order in which they are listed above."""
    return [
        Case(package, test, part)
        for package, tests in PARTS.items()
        for test, parts in tests.items()
        for part in parts or ("",)
    ]


def unlisted(package: str, tests: Iterable[str]) -> list[str]:
    """Those tests that KubeRay's program has and this list has not, or the other way round."""
    return sorted(set(tests) ^ set(PARTS[package]))


def _quoted(text: str) -> str:
    """The text as a regular expression of Go's, which knows `\\.` and the like, but not all that Python escapes."""
    return re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", text)
