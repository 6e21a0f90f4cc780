"""The differences that have a reason; each `what` is a row of docs/differences.md, which says what the reason is."""

from __future__ import annotations

from tests.differential.comparison import ABSENT, Difference

_SIDECAR = ("ray-job.sidecar-mode",)
_SUBMITTER = "spec/template/spec/containers/*"


def _versions(kuberay: object, muster: object) -> bool:
    return str(kuberay).replace("v1.5.0", "v1.7.0") == muster


def _open_files(kuberay: object, muster: object) -> bool:
    """Also with other spaces between words, which mean nothing to a shell."""
    later = str(kuberay).replace("ulimit -n 65536", "ulimit -n ${RAY_START_ULIMIT_OPEN_FILES:-65536}")
    return later.split() == str(muster).split()


def _same_names(kuberay: object, muster: object) -> bool:
    return sorted(str(kuberay).split()) == sorted(str(muster).split())


def _only_muster(kuberay: object, muster: object) -> bool:
    return kuberay == ABSENT


def _only_kuberay(kuberay: object, muster: object) -> bool:
    return muster == ABSENT


def _zero_is_left_out(kuberay: object, muster: object) -> bool:
    return kuberay == ABSENT and muster in (0, False)


DIFFERENCES: tuple[Difference, ...] = (
    # The gang
    Difference(
        "`schedulerName` and `schedulingGates` of pods", ("Pod *",), ("spec/schedulerName", "spec/schedulingGates/*")
    ),
    Difference(
        "`schedulerName` and `schedulingGates` of pods",
        ("Job *",),
        ("spec/template/spec/schedulerName", "spec/template/spec/schedulingGates/*"),
    ),
    Difference("annotations `muster.dev/…`", ("*",), ("metadata/annotations/muster.dev/*",)),
    Difference("minimum of each role in the PodGroup", ("PodGroup *",), ("spec/minTaskMember/*",), holds=_only_muster),
    Difference(
        "Volcano's annotations on the RayCluster of a RayJob",
        ("RayCluster *",),
        ("metadata/annotations/scheduling.k8s.io/group-name", "metadata/annotations/volcano.sh/task-spec"),
        holds=_only_kuberay,
    ),
    Difference("PodGroup of a RayJob that has ended", ("PodGroup *",), ("spec/minMember",)),
    Difference("`minResources` of a PodGroup", ("PodGroup *",), ("spec/minResources/*",)),
    Difference("events on gangs", ("Event * CreatedQueue",), holds=_only_muster),
    # The submitter
    Difference(
        "submitter of a RayJob",
        ("Job *",),
        (
            *("spec/podFailurePolicy/*", "spec/podReplacementPolicy", f"{_SUBMITTER}/env/MUSTER_SUBMISSION/*"),
            *("spec/template/spec/automountServiceAccountToken", "spec/template/spec/securityContext/*"),
            *(f"{_SUBMITTER}/{field}*" for field in ("args/", "command/", "image", "resources/", "securityContext/")),
        ),
    ),
    Difference(
        "submitter of a RayJob", ("Pod headgroup *", "RayCluster *"), ("*/containers/ray-job-submitter/*",), _SIDECAR
    ),
    Difference("submitter of a RayJob", ("RayCluster *", "RayJob *"), ("*/desiredCPU", "*/desiredMemory"), _SIDECAR),
    # Pods
    Difference("`wait-gcs-ready`", ("Pod *",), ("spec/initContainers/wait-gcs-ready/*",)),
    Difference("order of Ray's variables", ("Pod *",), ("spec/containers/*/env/ORDER",), holds=_same_names),
    # Status
    Difference(
        "counts of zero in the status",
        ("RayCluster *", "RayJob *"),
        ("status/*WorkerReplicas",),
        holds=_zero_is_left_out,
    ),
    Difference(
        "amounts in the status where `replicas` is out of its range",
        ("RayCluster *",),
        ("status/desiredCPU",),
        ("rule: replicas above the maximum", "rule: replicas below the minimum"),
    ),
    Difference("finalizer of a RayJob that has ended", ("RayJob *",), ("metadata/finalizers/0",), holds=_only_kuberay),
    Difference(
        "spec as its user wrote it",
        ("RayJob *",),
        ("spec/shutdownAfterJobFinishes",),
        holds=_zero_is_left_out,
    ),
    Difference("spec as its user wrote it", ("RayJob *",), ("spec/jobId",), holds=lambda kuberay, muster: muster == ""),
    Difference("spec as its user wrote it", ("RayCluster *",), ("status/observedGeneration",)),
    Difference(
        "RayCluster that can't be made",
        ("RayCluster *",),
        ("status/reason", "status/conditions/ReplicaFailure/*"),
        ("rule: a name that is too long",),
        holds=_only_muster,
    ),
    Difference("RayCluster that is suspended from the start", ("*",), ("*",), ("rule: a suspended cluster",)),
    Difference(
        "RayJob that is suspended from the start",
        ("RayJob *",),
        ("status/startTime",),
        ("rule: a job that is suspended",),
    ),
    Difference(
        "RayJob status in state Waiting", ("RayJob *",), ("status/rayClusterStatus/*",), ("ray-job.interactive-mode",)
    ),
    Difference(
        "`rayClusterStatus` of a RayJob without a cluster",
        ("RayJob *",),
        ("status/rayClusterStatus/desired*",),
        holds=lambda kuberay, muster: (kuberay, muster) == ("0", ABSENT),
    ),
    Difference("`status.message` of a RayJob", ("RayJob *",), ("status/message",)),
    Difference("event `AppFailed`", ("Event RayJob AppFailed",), holds=_only_muster),
    Difference(
        "`clusterSelector` with gang scheduling",
        ("Event RayJob RayClusterNotFound",),
        cases=("ray-job.use-existing-raycluster",),
        holds=_only_muster,
    ),
    # Services and containers
    Difference(
        "`ray.io/identifier` in the labels of the head's template",
        ("Service *",),
        ("metadata/labels/ray.io/identifier", "spec/selector/ray.io/identifier"),
        ("rule: labels of the head template that services select",),
    ),
    Difference(
        "probes where `dashboard-agent-listen-port` is set",
        ("Pod *",),
        ("spec/containers/*Probe/exec/command/2",),
        holds=lambda kuberay, muster: str(kuberay).replace(":52365/", ":52366/") == muster,
    ),
    Difference(
        "the Redis password in the start command",
        ("Pod *",),
        ("spec/containers/*/args/0", "spec/containers/*/env/KUBERAY_GEN_RAY_START_CMD/value"),
        holds=lambda kuberay, muster: _open_files(kuberay, str(muster).replace('"$REDIS_PASSWORD"', "$REDIS_PASSWORD")),
    ),
    # Later versions of KubeRay
    Difference(
        "v1.7.0: annotations for `upgradeStrategy`",
        ("Pod headgroup *",),
        ("metadata/annotations/ray.io/kuberay-version", "metadata/annotations/ray.io/upgrade-strategy-recreate-hash"),
        holds=_only_muster,
    ),
    Difference(
        "v1.7.0: SidecarMode and the head's restart",
        ("RayCluster *",),
        ("metadata/annotations/ray.io/disable-provisioned-head-restart",),
        _SIDECAR,
        holds=_only_muster,
    ),
    Difference(
        "v1.7.0: `KUBERAY_GEN_AUTOSCALER_START_CMD`",
        ("Pod *",),
        ("*/env/KUBERAY_GEN_AUTOSCALER_START_CMD/*",),
        holds=_only_muster,
    ),
    Difference(
        "v1.7.0: `plasma-directory`",
        ("Pod *",),
        ("spec/containers/*/volumeMounts/shared-mem/*", "spec/volumes/shared-mem/*"),
        ("rule: a plasma directory",),
        holds=_only_kuberay,
    ),
    Difference("v1.7.0: `minReplicas` above `maxReplicas`", ("*",), ("*",), ("rule: a minimum above the maximum",)),
    Difference("v1.7.0: limit of open files", ("Pod *",), ("spec/containers/*/args/0",), holds=_open_files),
    Difference("v1.7.0: `RAY_CLUSTER_NAMESPACE`", ("Pod *",), ("*/env/RAY_CLUSTER_NAMESPACE/*",), holds=_only_muster),
    Difference(
        "v1.7.0: version in Ray's usage statistics",
        ("Pod *",),
        ("*/env/RAY_USAGE_STATS_EXTRA_TAGS/value",),
        holds=_versions,
    ),
    Difference(
        "v1.7.0: labels of submitter pods", ("Job *",), ("spec/template/metadata/labels/*",), holds=_only_muster
    ),
    Difference(
        "v1.7.0: label `ray.io/job-submission-mode`",
        ("RayCluster *",),
        ("metadata/labels/ray.io/job-submission-mode",),
        holds=_only_muster,
    ),
    Difference("v1.7.0: annotations of PodGroups", ("PodGroup *",), ("metadata/annotations/*",), holds=_only_muster),
)
"""From KubeRay v1.5.0, on the same CRDs."""

BY_CRDS: tuple[Difference, ...] = (
    Difference("default of KubeRay's CRDs in pod templates", ("*",), ("spec/*/ports/*/protocol",)),
    Difference("field of v1.7.0", ("*",), ("spec/*workerGroupSpecs/*/priority",)),
)
"""Between the specs that KubeRay's CRDs and Muster's own make of a manifest."""
