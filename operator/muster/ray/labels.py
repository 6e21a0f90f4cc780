"""Every key that Muster writes on, or reads from, other people's objects: labels, annotations, gate, finalizer.

Ray's autoscaler, kubectl plugins, Kueue and dashboards select on the `ray.io/` and `volcano.sh/` keys, so their text
is a contract. Keys of Muster's own live under `muster.dev/`.
"""

from __future__ import annotations

# Labels of Ray pods and services
CLUSTER = "ray.io/cluster"
NODE_TYPE = "ray.io/node-type"
GROUP = "ray.io/group"
IDENTIFIER = "ray.io/identifier"
IS_RAY_NODE = "ray.io/is-ray-node"
SERVE = "ray.io/serve"
HEADLESS_WORKER_SERVICE = "ray.io/headless-worker-svc"
REPLICA_INDEX = "ray.io/worker-group-replica-index"
REPLICA_NAME = "ray.io/worker-group-replica-name"
HOST_INDEX = "ray.io/replica-host-index"
APP_NAME = "app.kubernetes.io/name"
CREATED_BY = "app.kubernetes.io/created-by"

# Their values
HEAD = "head"
WORKER = "worker"
REDIS_CLEANUP = "redis-cleanup"
HEAD_GROUP = "headgroup"
SUBMITTER_GROUP = "submittergroup"
APPLICATION = "kuberay"
OPERATOR = "kuberay-operator"

# Labels and annotations of RayCluster, RayJob and what is made for them
ORIGINATED_FROM_NAME = "ray.io/originated-from-cr-name"
ORIGINATED_FROM_KIND = "ray.io/originated-from-crd"
SUBMISSION_MODE = "ray.io/job-submission-mode"
PRIORITY_CLASS = "ray.io/priority-class-name"
DISABLE_PROVISIONED_HEAD_RESTART = "ray.io/disable-provisioned-head-restart"
ENABLE_SERVE_SERVICE = "ray.io/enable-serve-service"
OVERWRITE_CONTAINER_COMMAND = "ray.io/overwrite-container-cmd"
FT_ENABLED = "ray.io/ft-enabled"
EXTERNAL_STORAGE_NAMESPACE = "ray.io/external-storage-namespace"
FT_DELETION_TIMEOUT = "ray.io/gcs-ft-deletion-timeout"
KUBERAY_VERSION = "ray.io/kuberay-version"
UPGRADE_STRATEGY_RECREATE_HASH = "ray.io/upgrade-strategy-recreate-hash"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

# Gang scheduling, Volcano's keys
GROUP_NAME = "scheduling.k8s.io/group-name"
TASK_SPEC = "volcano.sh/task-spec"
QUEUE_NAME = "volcano.sh/queue-name"
NETWORK_TOPOLOGY_MODE = "volcano.sh/network-topology-mode"
NETWORK_TOPOLOGY_HIGHEST_TIER = "volcano.sh/network-topology-highest-tier-allowed"

# Gang scheduling, Muster's own
SCHEDULER_NAME = "muster"
DEFAULT_SCHEDULER = "default-scheduler"
GANG_GATE = "muster.dev/gang"
COMPANIONS = "muster.dev/companions"
COMPANION_NODES = "muster.dev/companion-nodes"

# What an object was made from, Muster's own
SPEC_HASH = "muster.dev/spec-hash"
TEMPLATE_HASH = "muster.dev/template-hash"

# On a RayJob, Muster's own
FAIL_FAST = "muster.dev/fail-fast"
RECREATE_HASH = "muster.dev/recreate-hash"
REDIS_CLEANUP_OF = "muster.dev/redis-cleanup-of"

# Finalizers: only where a deletion needs work outside Kubernetes
RAYJOB_FINALIZER = "ray.io/rayjob-finalizer"
REDIS_FINALIZER = "ray.io/gcs-ft-redis-cleanup-finalizer"

# spec.managedBy
MANAGED_BY_KUBERAY = "ray.io/kuberay-operator"
MANAGED_BY_MULTIKUEUE = "kueue.x-k8s.io/multikueue"
