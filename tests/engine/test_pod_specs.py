from __future__ import annotations

from typing import Any

import msgspec
import pytest

from muster.engine.amounts import TranslationError
from muster.engine.pod_specs import is_lost, task_spec, task_spec_again
from muster.kube.objects import Pod
from muster.scheduler.constraints import (
    PodConstraints,
    PreferredTerm,
    SelectorTerm,
    Toleration,
)
from muster.scheduler.resources import Resources
from muster.scheduler.selectors import Operator, Requirement
from muster.scheduler.specs import PodVerdict, TaskSpec, TaskStatus
from tests.engine.pod_manifests import pod

GATE = "muster.dev/gang"
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
GATED = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}

QUEUE_GATE = "scheduling.volcano.sh/queue-allocation-gate"


def translated(given: Pod) -> TaskSpec | None:
    return task_spec(given, scheduler_names=("muster", "volcano"), gate=GATE)


def spec_of(given: Pod) -> TaskSpec:
    found = translated(given)
    assert found is not None
    return found


def test_a_gated_member_of_a_gang_is_a_pending_task() -> None:
    given = pod("p", namespace="ns", group="pg", role="workers", gates=(GATE,), requests={"cpu": "2", "memory": "1Ki"})
    request = Resources(2000, 1024, {"pods": 1})
    assert translated(given) == TaskSpec(
        uid="uid-p",
        namespace="ns",
        name="p",
        job="ns/pg",
        role="workers",
        request=request,
        init_request=request,
        creation=1767225600.0,
        status=TaskStatus.PENDING,
    )


STATUSES: dict[str, tuple[dict[str, Any], TaskStatus]] = {
    "pending": ({}, TaskStatus.PENDING),
    "a pod that no kubelet has seen has no phase": ({"phase": ""}, TaskStatus.PENDING),
    "bound": ({"node": "n"}, TaskStatus.BOUND),
    "running": ({"node": "n", "phase": "Running"}, TaskStatus.RUNNING),
    "running and going": ({"node": "n", "phase": "Running", "deleted": True}, TaskStatus.RELEASING),
    "bound and going": ({"node": "n", "deleted": True}, TaskStatus.RELEASING),
    "pending and going": ({"deleted": True}, TaskStatus.RELEASING),
    "succeeded": ({"node": "n", "phase": "Succeeded"}, TaskStatus.SUCCEEDED),
    "failed": ({"node": "n", "phase": "Failed"}, TaskStatus.FAILED),
    "failed and going": ({"node": "n", "phase": "Failed", "deleted": True}, TaskStatus.FAILED),
    "out of reach": ({"node": "n", "phase": "Unknown"}, TaskStatus.UNKNOWN),
}


@pytest.mark.parametrize(("given", "status"), STATUSES.values(), ids=STATUSES.keys())
def test_the_status_follows_phase_node_and_deletion(given: dict[str, Any], status: TaskStatus) -> None:
    assert spec_of(pod(**given)).status is status


KNOWN: dict[str, tuple[Pod, bool]] = {
    "ours, waiting": (pod(), True),
    "under Volcano's name too": (pod(scheduler="volcano"), True),
    "ours, ended": (pod(node="n", phase="Succeeded"), True),
    "another's, waiting": (pod(scheduler="default-scheduler"), False),
    "another's, on a node": (pod(scheduler="default-scheduler", node="n", phase="Running"), True),
    "another's, ended": (pod(scheduler="default-scheduler", node="n", phase="Failed"), False),
}


@pytest.mark.parametrize(("given", "known"), KNOWN.values(), ids=KNOWN.keys())
def test_the_model_knows_our_pods_and_whatever_fills_a_node(given: Pod, known: bool) -> None:
    assert (translated(given) is not None) is known


def test_the_pod_of_another_scheduler_is_in_no_gang_of_ours() -> None:
    found = spec_of(pod(scheduler="default-scheduler", node="n", group="pg"))
    assert (found.ours, found.job) == (False, "")


FIELDS: dict[str, tuple[Pod, str, Any]] = {
    "no group": (pod(), "job", ""),
    "role from the label": (pod(labels={"volcano.sh/task-spec": "head"}), "role", "head"),
    "role: the annotation goes first": (pod(role="a", labels={"volcano.sh/task-spec": "b"}), "role", "a"),
    "priority: 1 without any": (pod(), "priority", 1),
    "priority of the pod": (pod(priority=7), "priority", 7),
    "priority: 0 is a priority": (pod(priority=0), "priority", 0),
    "priority: annotation first": (pod(priority=7, annotations={"volcano.sh/task-priority": "9"}), "priority", 9),
    "priority: bad annotation": (pod(priority=7, annotations={"volcano.sh/task-priority": "high"}), "priority", 7),
    "our gate alone does not hold it back": (pod(gates=(GATE,)), "gated", False),
    "another's gate does": (pod(gates=(GATE, "example.com/quota")), "gated", True),
    "Volcano's gate does": (pod(gates=(GATE, QUEUE_GATE)), "gated", True),
    "Volcano's gate by request does not": (pod(gates=(QUEUE_GATE,), annotations={QUEUE_GATE: "true"}), "gated", False),
    "it does for any other word": (pod(gates=(QUEUE_GATE,), annotations={QUEUE_GATE: "yes"}), "gated", True),
    "nor if it is not alone": (pod(gates=(QUEUE_GATE, "x/y"), annotations={QUEUE_GATE: "true"}), "gated", True),
    "preemptable by default": (pod(), "preemptable", True),
    "not preemptable": (pod(annotations={"volcano.sh/preemptable": "false"}), "preemptable", False),
    "preemptable by label": (pod(labels={"volcano.sh/preemptable": "T"}), "preemptable", True),
    "preemptable: what is no truth value means no": (pod(labels={"volcano.sh/preemptable": "y"}), "preemptable", False),
    "never preempts": (pod(preemptionPolicy="Never"), "preemption_policy_never", True),
    "preempts": (pod(preemptionPolicy="PreemptLowerPriority"), "preemption_policy_never", False),
    "queue of its own": (pod(annotations={"scheduling.volcano.sh/queue-name": "q"}), "queue", "q"),
    "queue, as a member of a gang": (pod(group="g", labels={"volcano.sh/queue-name": "q"}), "queue", "q"),
    "a queue label on a pod without a group": (pod(labels={"volcano.sh/queue-name": "q"}), "queue", ""),
    "priority class": (pod(priorityClassName="high"), "priority_class", "high"),
    "says nothing yet": (pod(status={"conditions": [GATED]}), "verdict", None),
    "says Unschedulable": (
        pod(status={"conditions": [UNSCHEDULABLE]}),
        "verdict",
        PodVerdict("Pending", "Unschedulable", "no room"),
    ),
}


@pytest.mark.parametrize(("given", "field", "value"), FIELDS.values(), ids=FIELDS.keys())
def test_a_field_is_read_from_where_kubernetes_and_volcano_put_it(given: Pod, field: str, value: Any) -> None:
    assert getattr(spec_of(given), field) == value


def test_constraints_are_translated_whole() -> None:
    zone = {"key": "zone", "operator": "In", "values": ["a", "b"]}
    required = {
        "nodeSelectorTerms": [{"matchExpressions": [zone]}, {"matchFields": [{**zone, "key": "metadata.name"}]}]
    }
    preferred = [{"weight": 5, "preference": {"matchExpressions": [{"key": "ssd", "operator": "Exists"}]}}]
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": required,
            "preferredDuringSchedulingIgnoredDuringExecution": preferred,
        }
    }
    tolerations = [{"operator": "Exists"}, {"key": "gpu", "value": "yes", "effect": "NoSchedule"}]
    given = pod(nodeSelector={"b": "2", "a": "1"}, affinity=affinity, tolerations=tolerations)
    assert spec_of(given).scheduling == PodConstraints(
        node_selector=(("a", "1"), ("b", "2")),
        required=(
            SelectorTerm(labels=(Requirement("zone", Operator.IN, ("a", "b")),)),
            SelectorTerm(fields=(Requirement("metadata.name", Operator.IN, ("a", "b")),)),
        ),
        preferred=(PreferredTerm(5, SelectorTerm(labels=(Requirement("ssd", Operator.EXISTS),))),),
        tolerations=(Toleration(operator="Exists"), Toleration("gpu", "Equal", "yes", "NoSchedule")),
        assumed=(0, 200 * 1024**2),
    )


def required_term(**term: Any) -> dict[str, Any]:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


TERM = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
BROKEN: dict[str, tuple[Pod, str]] = {
    "amount": (pod(requests={"cpu": "much"}), "spec.containers[0].resources.requests[cpu]"),
    "operator": (
        pod(affinity=required_term(matchExpressions=[{"key": "a", "operator": "Near"}])),
        f"{TERM}.matchExpressions[0].operator",
    ),
    "field": (
        pod(affinity=required_term(matchFields=[{"key": "metadata.uid", "operator": "In"}])),
        f"{TERM}.matchFields[0].key",
    ),
}


@pytest.mark.parametrize(("given", "path"), BROKEN.values(), ids=BROKEN.keys())
def test_a_pod_that_cannot_be_translated_is_refused_by_its_field(given: Pod, path: str) -> None:
    with pytest.raises(TranslationError) as caught:
        translated(given)
    assert caught.value.path == path


BOUND_AT = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:10Z"}
COOLDOWNS: dict[str, tuple[dict[str, Any], float | None]] = {
    "from when it was bound": ({"status": {"conditions": [BOUND_AT], "startTime": "2026-01-01T00:00:20Z"}}, 70.0),
    "else from its start": ({"status": {"startTime": "2026-01-01T00:00:20Z"}}, 80.0),
    "else from when it was made": ({}, 60.0),
    "not bound yet": ({"node": None, "phase": "Pending"}, None),
    "not running yet": ({"phase": "Pending"}, None),
    "a label": ({"labels": {"volcano.sh/cooldown-time": "2m"}}, 120.0),
    "no time": ({"annotations": {"volcano.sh/cooldown-time": "soon"}}, None),
    "not stated": ({"annotations": {}}, None),
}


@pytest.mark.parametrize(("given", "seconds"), COOLDOWNS.values(), ids=COOLDOWNS.keys())
def test_a_running_pod_cools_down_for_as_long_as_it_states(given: dict[str, Any], seconds: float | None) -> None:
    options = {"node": "n", "phase": "Running", "annotations": {"volcano.sh/cooldown-time": "1m"}, **given}
    expected = None if seconds is None else 1767225600.0 + seconds
    assert spec_of(pod(**options)).cooldown_until == expected


@pytest.mark.parametrize(
    ("annotations", "revocable"),
    [
        ({"volcano.sh/revocable-zone": "*"}, True),
        ({"volcano.sh/revocable-zone": "night", "volcano.sh/preemptable": "true"}, False),
        ({"volcano.sh/preemptable": "true"}, True),
        ({"volcano.sh/preemptable": "false"}, False),
        ({}, False),
    ],
)
def test_a_pod_says_whether_it_bears_revocable_nodes(annotations: dict[str, str], revocable: bool) -> None:
    assert spec_of(pod(annotations=annotations)).scheduling.revocable is revocable


@pytest.mark.parametrize(
    ("status", "lost"),
    [
        ({"phase": "Failed", "reason": "OutOfcpu"}, True),
        ({"phase": "Failed", "reason": "OutOfnvidia.com/gpu"}, True),
        ({"phase": "Failed", "reason": "UnexpectedAdmissionError"}, True),
        ({"phase": "Failed", "reason": "Evicted"}, True),
        ({"phase": "Failed", "conditions": [{"type": "DisruptionTarget", "status": "True"}]}, True),
        ({"phase": "Failed", "reason": "DeadlineExceeded"}, False),
        ({"phase": "Failed"}, False),
        ({"phase": "Running", "reason": "OutOfcpu"}, False),
    ],
)
def test_a_pod_that_the_kubelet_refused_has_not_failed_by_itself(status: dict[str, Any], lost: bool) -> None:
    assert is_lost(msgspec.convert({"metadata": {"name": "p"}, "status": status}, type=Pod)) is lost


ASKS: dict[str, Any] = {
    "group": "pg",
    "labels": {"app": "x"},
    "tolerations": [{"key": "dedicated", "operator": "Exists"}],
    "nodeSelector": {"zone": "a"},
}

# versions of one pod, one after the other; whether what it asks for stays as it is
VERSIONS: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "our gate removed": ({"gates": (GATE,)}, {}, True),
    "bound": ({}, {"node": "n"}, True),
    "running": ({"node": "n"}, {"node": "n", "phase": "Running"}, True),
    "going": ({"node": "n"}, {"node": "n", "deleted": True}, True),
    "resized": ({"node": "n"}, {"node": "n", "requests": {"cpu": "2"}}, False),
    "tolerates more": ({}, {"tolerations": [{"operator": "Exists"}]}, False),
    "another label, which terms may copy": ({}, {"labels": {"app": "y"}}, False),
    "bears revocable nodes now": ({}, {"annotations": {"volcano.sh/revocable-zone": "*"}}, False),
    "made anew": ({}, {"uid": "another"}, True),
    "pinned to a node": (
        {"scheduler": "default-scheduler", "gates": (GATE,)},
        {
            "scheduler": "default-scheduler",
            "annotations": {"muster.dev/delegated-at": "2026-01-01T00:00:00Z"},
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
                        ]
                    }
                }
            },
        },
        False,
    ),
    "its claim is made": (
        {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]},
        {
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}],
            "status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "p-gpu"}]},
        },
        False,
    ),
}


@pytest.mark.parametrize(("before", "after", "same"), VERSIONS.values(), ids=VERSIONS.keys())
def test_a_pod_seen_again_is_translated_as_if_it_were_new_and_what_it_asks_for_only_where_that_has_changed(
    before: dict[str, Any], after: dict[str, Any], same: bool
) -> None:
    old, new = pod(**{**ASKS, **before}), pod(**{**ASKS, **after}, version=2)
    known = spec_of(old)
    again = task_spec_again(new, old, known, scheduler_names=("muster", "volcano"), gate=GATE)
    assert again == spec_of(new)
    assert again is not None
    assert (again.request is known.request and again.scheduling is known.scheduling) is same


CLAIM = {"volumes": [{"persistentVolumeClaim": {"claimName": "data"}}]}
OWN_CLAIM = {"volumes": [{"name": "scratch", "ephemeral": {}}]}
SIBLINGS: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "on another node": ({"node": "n1"}, {"node": "n2"}, True),
    "one waits at its gate": ({"node": "n1"}, {"gates": (GATE,)}, True),
    "of another role": ({}, {"role": "head"}, False),
    "with another label": ({}, {"labels": {"app": "y"}}, False),
    "with the same claim": (CLAIM, CLAIM, True),
    "with a claim of that name in another namespace": (CLAIM, {**CLAIM, "namespace": "other"}, False),
    "each with a claim of its own": (OWN_CLAIM, OWN_CLAIM, False),
    "asking for more": ({}, {"requests": {"cpu": "2"}}, False),
}


@pytest.mark.parametrize(("before", "other", "same"), SIBLINGS.values(), ids=SIBLINGS.keys())
def test_a_pod_is_translated_after_another_one_as_if_it_were_alone_and_shares_what_both_ask_for(
    before: dict[str, Any], other: dict[str, Any], same: bool
) -> None:
    old, new = pod("one", **{**ASKS, **before}), pod("two", **{**ASKS, **other})
    known = spec_of(old)
    found = task_spec_again(new, old, known, scheduler_names=("muster", "volcano"), gate=GATE)
    assert found == spec_of(new)
    assert found is not None
    assert (found.request is known.request and found.scheduling is known.scheduling) is same


def test_a_pod_whose_requests_can_t_be_read_any_more_is_refused_also_when_it_is_seen_again() -> None:
    old, new = pod(**ASKS), pod(**ASKS, requests={"cpu": "x"}, version=2)
    with pytest.raises(TranslationError):
        task_spec_again(new, old, spec_of(old), scheduler_names=("muster",), gate=GATE)
