"""Phases, conditions, verdicts and reasons after a cycle."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from muster.scheduler.constraints import PodConstraints, Taint
from muster.scheduler.outcome import Outcome
from muster.scheduler.reasons import Advice, Code, NearMiss, Reason, ReasonClass, Wake, describe, dominant
from muster.scheduler.specs import Condition, Phase, QueueState, TaskStatus
from muster.testing import (
    EPOCH,
    Cluster,
    Spec,
    companion,
    configuration,
    gang,
    node,
    nodes,
    pod,
    pod_group,
    pods,
    queue,
    resources,
)

GONE, RUN, OUT, BAD = TaskStatus.RELEASING, TaskStatus.RUNNING, TaskStatus.SUCCEEDED, TaskStatus.FAILED
NOWHERE = PodConstraints(node_selector=(("zone", "nowhere"),))


@pytest.mark.parametrize(
    ("group", "statuses", "phase"),
    [
        pytest.param(pod_group("g", 2, phase=Phase.RUNNING), [RUN, RUN], Phase.RUNNING, id="runs"),
        pytest.param(pod_group("g", 2, phase=Phase.INQUEUE), [TaskStatus.BOUND] * 2, Phase.RUNNING, id="bound"),
        pytest.param(pod_group("g", 2, phase=Phase.RUNNING), [RUN, GONE], Phase.RUNNING, id="one leaves"),
        pytest.param(pod_group("g", 2, phase=Phase.RUNNING), [GONE, GONE], Phase.RUNNING, id="all leave"),
        pytest.param(pod_group("g", 2, phase=Phase.RUNNING), [GONE], Phase.PENDING, id="too few left"),
        pytest.param(pod_group("g", 2, phase=Phase.RUNNING), [RUN], Phase.UNKNOWN, id="runs in part"),
        pytest.param(pod_group("g", 2, phase=Phase.RUNNING), [OUT, OUT], Phase.COMPLETED, id="succeeded"),
        pytest.param(pod_group("g", 2, phase=Phase.RUNNING), [OUT, BAD], Phase.COMPLETED, id="failed is done too"),
        pytest.param(pod_group("g", 2, phase=Phase.RUNNING), [OUT, RUN], Phase.RUNNING, id="one still runs"),
        pytest.param(pod_group("g", 1, phase=Phase.COMPLETED), [], Phase.COMPLETED, id="stays completed"),
        pytest.param(pod_group("g", 2, phase=Phase.INQUEUE), [], Phase.INQUEUE, id="stays inqueue"),
        pytest.param(pod_group("g", 0), [], Phase.COMPLETED, id="nothing to do"),
        pytest.param(pod_group("g", 0, phase=Phase.RUNNING), [RUN], Phase.RUNNING, id="no minimum, one runs"),
    ],
)
def test_the_phase_follows_from_the_members(group: Spec, statuses: list[TaskStatus], phase: Phase) -> None:
    members = [pod(f"m{index}", "g", node="n", status=status) for index, status in enumerate(statuses)]
    cluster = Cluster.of(node("n"), group, members)
    cluster.cycle()
    assert cluster.phase("g") is phase


def test_a_gang_goes_from_pending_to_running_without_a_detour() -> None:
    cluster = Cluster.of(nodes("n", 1), gang("g", 2))
    phases = []
    for outcome in cluster.run():
        phases += [status.phase for status in outcome.pod_groups.values()]
    assert phases == [Phase.INQUEUE, Phase.RUNNING]


def test_a_gang_that_is_being_completed_keeps_its_phase() -> None:
    """volcano#153, #1859: no flapping between Unknown, Pending and Inqueue."""
    cluster = Cluster.of(nodes("n", 2, cpu=1), gang("g", 2))
    cluster.run()
    cluster.delete("g-w-1")
    phases = [cluster.cycle().pod_groups["default/g"].phase]
    cluster.add(pod("g-w-2", "g"))
    for outcome in cluster.run():
        phases += [status.phase for status in outcome.pod_groups.values()]
    assert phases == [Phase.UNKNOWN, Phase.UNKNOWN, Phase.RUNNING]


@pytest.mark.parametrize("phase", [Phase.RUNNING, Phase.COMPLETED])
def test_a_gang_whose_minimum_has_succeeded_is_completed_though_an_extra_member_waits(phase: Phase) -> None:
    done = pod("done", "g", node="n", status=OUT)
    cluster = Cluster.of(node("n", cpu=1), pod("x", node="n"), pod_group("g", 1, phase=phase), done, pods("g", 1))
    for _ in range(3):
        cluster.cycle()
        assert cluster.phase("g") is Phase.COMPLETED
    cluster.delete("x")
    cluster.run()
    assert cluster.phase("g") is Phase.RUNNING


def test_a_gang_that_failed_is_not_completed_while_its_replacement_waits() -> None:
    failed = pod("failed", "g", node="n", status=BAD)
    group = pod_group("g", 1, phase=Phase.RUNNING)
    cluster = Cluster.of(node("n", cpu=1), pod("x", node="n"), group, failed, pods("g", 1))
    cluster.cycle()
    assert cluster.phase("g") is Phase.PENDING


def test_a_completed_gang_that_gets_new_pods_runs_again() -> None:
    cluster = Cluster.of(nodes("n", 1), pod_group("g", 1, phase=Phase.COMPLETED))
    cluster.cycle()
    cluster.add(pods("g", 1))
    cluster.run()
    assert cluster.phase("g") is Phase.RUNNING


def conditions(outcome: Outcome) -> dict[str, bool]:
    return {each.type: each.status for each in outcome.pod_groups["default/g"].conditions}


def test_a_condition_is_cleared_when_it_is_no_longer_true() -> None:
    cluster = Cluster.of(nodes("n", 1, cpu=1), gang("g", 2))
    outcome = cluster.cycle()
    assert conditions(outcome) == {"Unschedulable": True}
    assert outcome.pod_groups["default/g"].conditions[0].reason == "NotEnoughResources"
    cluster.add(nodes("m", 1, cpu=1))
    outcome = cluster.cycle(seconds=5)
    assert conditions(outcome) == {"Unschedulable": False, "Scheduled": True}
    assert {each.last_transition for each in outcome.pod_groups["default/g"].conditions} == {cluster.now}
    cluster.settle(outcome)
    cluster.delete("g-w-0", "g-w-1")
    cluster.cycle()
    cluster.cache.remove_node("m-0")
    cluster.add(pods("g", 2))
    cluster.cycle()
    assert {each.type: each.status for each in cluster.cache.jobs["default/g"].conditions} == {
        "Unschedulable": True,
        "Scheduled": False,
    }


def test_conditions_keep_their_order_and_others_are_left_alone() -> None:
    stored = (Condition("Mine", True, "Why", "x", 1.0), Condition("Unschedulable", True, "Old", "y", 2.0))
    group = replace(pod_group("g", 1), conditions=stored)
    outcome = Cluster.of(nodes("n", 1), group, pods("g", 1)).cycle()
    assert [each.type for each in outcome.pod_groups["default/g"].conditions] == ["Mine", "Unschedulable", "Scheduled"]


def test_a_podgroup_whose_pods_are_not_made_yet_does_not_complain() -> None:
    cluster = Cluster.of(nodes("n", 1), pod_group("g", 2))
    assert conditions(cluster.cycle()) == {}


def test_an_idle_cluster_has_nothing_to_say() -> None:
    """P8."""
    cluster = Cluster.of(nodes("n", 1, cpu=2), queue("q"), gang("g", 2), gang("waits", 1), pod("loner", cpu=9))
    cluster.run()
    assert cluster.cycle(seconds=10) == Outcome(wake_at=EPOCH + 605), "when `waits` will have waited too long"


def reason_of(*specs: Spec | list[Spec], name: str = "g") -> Reason:
    cluster = Cluster.of(*specs)
    cluster.cycle()
    reason = cluster.cache.jobs[f"default/{name}"].reason
    assert reason is not None
    return reason


@pytest.mark.parametrize(
    ("specs", "reason_class", "code", "words"),
    [
        pytest.param(
            [*nodes("n", 1), replace(pod_group("g"), problem="spec.minMember: not a number"), *pods("g", 1)],
            "misconfigured", Code.INVALID_POD_GROUP, "spec.minMember", id="unusable",
        ),
        pytest.param(
            [*nodes("n", 1), pod_group("g", 2), *pods("g", 1), pod("held", "g", gated=True)],
            "gated", Code.PODS_GATED, "1 of 2.*held", id="gated",
        ),
        pytest.param(
            [*nodes("n", 1), pod_group("g", 2, roles={"a": 1}), *pods("g", 2), pod("h", "g", role="a", gated=True)],
            "gated", Code.PODS_GATED, "0 of 1 pods of role a .*h ", id="the only one of its role is gated",
        ),
        pytest.param(
            [*nodes("n", 1), pod_group("g", queue="none"), pod("held", "g", gated=True)],
            "gated", Code.PODS_GATED, "held", id="gated, and no queue",
        ),
        pytest.param([*gang("g", 1, queue="none")], "queue", Code.QUEUE_MISSING, "none", id="no queue"),
        pytest.param(
            [*nodes("n", 2), *gang("g", 2, 5)], "never", Code.LARGER_THAN_CLUSTER, "cpu 10.*cpu 8", id="cluster",
        ),
        pytest.param(
            [*nodes("n", 3), *gang("g", 2, 5)], "never", Code.LARGER_THAN_EVERY_NODE, "g-w-0.*cpu 5.*cpu 4", id="node",
        ),
        pytest.param(
            [*nodes("n", 3), queue("q", capability=resources(3)), *gang("g", 2, 2, queue="q")],
            "never", Code.LARGER_THAN_QUEUE, "q.*cpu 4.*cpu 3", id="cap of the queue",
        ),
        pytest.param(
            [*nodes("n", 3), queue("q", capability=resources(3)), pod_group("g", 2, queue="q"), *pods("g", 3, 2)],
            "never", Code.LARGER_THAN_QUEUE, "q.*cpu 4.*cpu 3", id="cap of the queue, more pods than needed",
        ),
        pytest.param(
            [
                *nodes("n", 3), queue("q", capability=resources(4)), pod_group("g", 3, queue="q"),
                *pods("g", 3, 2), pod("small", "g", cpu=0.5),
            ],
            "never", Code.LARGER_THAN_QUEUE, "q.*cpu 4500m.*cpu 4", id="the smallest of them would do",
        ),
        pytest.param(
            [*nodes("n", 2), pod_group("g", 3), *pods("g", 4, 3)],
            "never", Code.LARGER_THAN_CLUSTER, "cpu 9.*cpu 8", id="cluster, more pods than needed",
        ),
        pytest.param(
            [*nodes("n", 1), pod_group("g", 3), *pods("g", 2)],
            "incomplete", Code.NOT_ENOUGH_PODS, "2 of 3", id="pods missing",
        ),
        pytest.param(
            [*nodes("n", 1), pod_group("g", 2, roles={"head": 1}), *pods("g", 2)],
            "incomplete", Code.NOT_ENOUGH_PODS_OF_ROLE, "0 of 1.*head", id="role short",
        ),
        pytest.param([*pods("g", 1)], "incomplete", Code.POD_GROUP_MISSING, "default/g", id="no PodGroup"),
        pytest.param(
            [*nodes("n", 3), queue("q", capability=resources(3)), *gang("a", 2, queue="q"), *gang("g", 2, queue="q")],
            "quota", Code.QUEUE_QUOTA, "queue q.*cpu 2.*cpu 3", id="quota",
        ),
        pytest.param(
            [
                *nodes("n", 3), queue("q", capability=resources(4)), *gang("a", 2, queue="q"),
                pod_group("g", 3, queue="q"), *pods("g", 4),
            ],
            "quota", Code.QUEUE_QUOTA, "queue q.*asked for cpu 3, used cpu 2 of cpu 4", id="quota of all it needs",
        ),
        pytest.param(
            [*nodes("n", 3, cpu=2), *gang("a", 3, 2), *gang("g", 2, 2)],
            "quota", Code.CLUSTER_OVERCOMMIT,
            "cpu 4, .* promised cpu 6 of cpu 7200m.*no room for g-w-0 either.*3 Insufficient cpu", id="overcommit",
        ),
        pytest.param(
            [*nodes("n", 3, cpu=2), *gang("a", 3, 2), pod_group("g", 2), *pods("g", 2, 2)],
            "room", Code.NOT_ENOUGH_NODES, "0 of 2.*g-w-0.*3 Insufficient cpu", id="full",
        ),
        pytest.param(
            [
                *nodes("n", 2, cpu=2), pod("x", node="n-0", cpu=1.5), pod("y", node="n-1", cpu=0.5),
                pod_group("g", 2), *pods("g", 2),
            ],
            "room", Code.NOT_ENOUGH_NODES, "1 of 2 members.*closest: n-0 lacks cpu 500m", id="near miss",
        ),
        pytest.param(
            [*nodes("n", 1, cpu=2), pod("x", node="n-0", cpu=1), pod_group("g", 2), *pods("g", 2)],
            "room", Code.NOT_ENOUGH_NODES,
            "1 of 2 members.*needs cpu 1: .*1 Insufficient cpu beside the gang's other members.*lacks cpu 1",
            id="one of the gang fits",
        ),
        pytest.param(
            [node("n", pods=2), *gang("a", 1), *gang("b", 1), *gang("g", 1)],
            "room", Code.NOT_ENOUGH_NODES, "1 node.s. pod number exceeded", id="pod number",
        ),
        pytest.param(
            [*nodes("n", 2), *gang("g", 1, scheduling=NOWHERE)],
            "room", Code.NOT_ENOUGH_NODES, "2 node.s. didn't match", id="selector",
        ),
        pytest.param(
            [node("n", taints=[Taint("gpu", "only")]), *gang("g", 1)],
            "room", Code.NOT_ENOUGH_NODES, "untolerated taint {gpu: only}", id="taint",
        ),
        pytest.param(
            [node("n", unschedulable=True), *gang("g", 1)],
            "room", Code.NOT_ENOUGH_NODES, "1 node.s. were unschedulable", id="cordon",
        ),
        pytest.param([*gang("g", 1)], "room", Code.NOT_ENOUGH_NODES, "no nodes", id="no nodes"),
    ],
)  # fmt: skip
def test_every_wait_has_one_reason_with_numbers(specs: list[Spec], reason_class: str, code: Code, words: str) -> None:
    reason = reason_of(specs)
    assert reason.reason_class.value == reason_class
    assert reason.code is code
    assert re.search(words, describe(reason)), describe(reason)


TAINTED = [Taint("control-plane", "")]


@pytest.mark.parametrize(
    ("specs", "have", "words"),
    [
        pytest.param(
            [*nodes("n", 2, cpu=2), pod_group("g", 4), pod("h", "g", cpu=0.5), *pods("g", 3, 1.1)], 3,
            "only 3 of 4 would have a place$", id="more pods than the nodes can hold, though the sum would do",
        ),
        pytest.param(
            [*nodes("n", 2, cpu=2), *(node(name, cpu=2, taints=TAINTED) for name in "xy"), *gang("g", 5)], 4,
            "only 4 of 5 would have a place$", id="a node that is not for them",
        ),
        pytest.param(
            [*nodes("n", 2, cpu=2), pod_group("g", 3), *pods("g", 4, 1.1)], 2, "only 2 of 3", id="with one too many",
        ),
        pytest.param([node("n", taints=TAINTED), *gang("g", 1)], 0, "nor would there be", id="no node at all"),
        pytest.param([*nodes("n", 2, cpu=2), pod("x", node="n-0", cpu=1.5), *gang("g", 3)], None, "2 of 3", id="fits"),
        pytest.param(
            [*nodes("n", 1, cpu=2), node("m", cpu=2, unschedulable=True), *gang("g", 3)], None, "unschedulable",
            id="a cordon passes",
        ),
        pytest.param(
            [
                *nodes("n", 1, cpu=2), node("m", cpu=2, taints=[Taint("node.kubernetes.io/not-ready", "")]),
                *gang("g", 3),
            ],
            None, "untolerated taint", id="so does a node that is not ready",
        ),
        pytest.param([*gang("g", 1)], None, "no nodes", id="no nodes: they may be about to come"),
        pytest.param(
            [*nodes("n", 2, cpu=2), pod_group("g", 2, phase=Phase.RUNNING), *pods("g", 2, node="n-0"),
             *pods("g", 3, 2, first=2)],
            None, "2 of 5|3 of 5", id="it has its minimum",
        ),
    ],
)  # fmt: skip
def test_a_gang_that_would_not_fit_on_empty_nodes_is_not_told_to_wait(
    specs: list[Spec], have: int | None, words: str
) -> None:
    reason = reason_of(specs)
    assert (reason.code, reason.have_if_empty) == (Code.NOT_ENOUGH_NODES, have)
    assert reason.advice is (Advice.WAIT if have is None else Advice.CHANGE)
    assert re.search(words, describe(reason)), describe(reason)


def test_nodes_that_a_gang_may_not_use_do_not_count_for_it() -> None:
    reason = reason_of([*nodes("n", 2), node("m", taints=TAINTED), *gang("g", 4, 4)])
    assert (reason.code, reason.requested, reason.limit) == (Code.LARGER_THAN_CLUSTER, 16_000, 8_000)
    assert describe(reason).endswith("all nodes that its pods may use together have cpu 8")


def test_what_a_gang_will_need_later_is_said_to_be_in_what_it_asks_for() -> None:
    reason = reason_of([node("n", 4), *gang("g", 4, companions=[companion("submitter", cpu=0.5)])])
    assert "asks for cpu 4500m (its submitter's pod included), all nodes together have cpu 4" in describe(reason)


def test_the_numbers_are_of_a_node_that_is_named() -> None:
    """Where the gang's own members fill the nodes, of one beside them: what it lacks is no other number."""
    reason = reason_of([*nodes("n", 2, cpu=2), pod("x", node="n-0", cpu=0.1), *gang("g", 3, 1.2)])
    assert (reason.node, reason.requested, reason.used, reason.free) == ("n-1", 1200, 1200, 800)
    assert reason.near_miss == NearMiss("n-1", "cpu 400m")


def test_a_gang_whose_submitter_no_node_could_hold_is_told_so() -> None:
    alone = gang("g", 1, companions=[companion("submitter", cpu=5)])
    reason = reason_of([node("n", 4), node("m", 4), *alone])
    assert (reason.code, reason.requested, reason.limit) == (Code.LARGER_THAN_EVERY_NODE, 5000, 4000)
    assert reason.member is not None
    assert "submitter" in reason.member


def test_quota_that_is_a_share_says_so() -> None:
    fair = configuration("allocate", ["gang"], ["predicates", "proportion"])
    cluster = Cluster.of(node("n", 4), [queue(name) for name in "ab"], configuration=fair)
    cluster.add(gang("a", 4, queue="a"), gang("b", 4, queue="b"))
    cluster.run()
    reason = cluster.cache.jobs["default/b"].reason
    assert reason is not None
    assert describe(reason).endswith("of cpu 2, its share of the cluster now")


def test_a_gang_whose_pods_are_still_being_made_says_how_many_there_are() -> None:
    cluster = Cluster.of(node("n", 4), pod_group("g", 3), pods("g", 1))
    status = cluster.cycle().pod_groups["default/g"]
    assert [each.message for each in status.conditions] == ["1 of 3 pods exist"]
    assert status.reason is not None
    assert status.reason.advice is Advice.WAIT


def test_pods_without_their_pod_group_are_named_since_nothing_else_can_say_why_they_wait() -> None:
    cluster = Cluster.of(node("n", 4), pods("nobody", 2))
    (key, reason), *others = cluster.cycle().orphans.items()
    assert (key, reason.code, others) == ("default/nobody-w-0", Code.POD_GROUP_MISSING, [])
    assert reason.advice is Advice.CHANGE
    assert not cluster.cycle().orphans, "once is enough while nothing changes"


@pytest.mark.parametrize(
    ("name", "code"),
    [("closing", Code.QUEUE_CLOSED), ("none", Code.QUEUE_MISSING), ("inner", Code.QUEUE_NOT_LEAF)],
)
def test_an_extra_member_of_a_running_gang_waits_for_its_queue_and_says_so(name: str, code: Code) -> None:
    queues = [queue("closing", state=QueueState.CLOSING), queue("inner"), queue("below", parent="inner")]
    group = pod_group("g", 1, queue=name, phase=Phase.RUNNING)
    cluster = Cluster.of(nodes("n", 1), queues, group, pods("g", 1, node="n-0"), pods("g", 1, first=1))
    assert not cluster.cycle().bindings
    reason = cluster.cache.jobs["default/g"].reason
    assert reason is not None
    assert reason.code is code
    assert cluster.phase("g") is Phase.RUNNING


def test_an_extra_member_that_finds_no_node_does_not_make_the_gang_look_unplaced() -> None:
    cluster = Cluster.of(nodes("n", 1, cpu=2), pod_group("g", 1), pods("g", 4))
    assert len(cluster.cycle().bindings) == 2
    reason = cluster.cache.jobs["default/g"].reason
    assert reason is not None
    assert (reason.code, reason.have, reason.need) == (Code.NOT_ENOUGH_NODES, 2, 4)
    assert describe(reason).startswith("2 of 4 members have a place; ")


def test_an_extra_member_that_waits_for_a_leaving_pod_says_so() -> None:
    leaving = pod("old", node="n-0", cpu=3, status=TaskStatus.RELEASING)
    cluster = Cluster.of(nodes("n", 1), leaving, pod_group("g", 1), pods("g", 2))
    assert len(cluster.cycle().bindings) == 1
    reason = cluster.cache.jobs["default/g"].reason
    assert reason is not None
    assert (reason.code, reason.have, reason.need) == (Code.WAITING_FOR_RELEASE, 1, 2)


@pytest.mark.parametrize("least", [0, 1])
@pytest.mark.parametrize("phase", [Phase.PENDING, Phase.INQUEUE, Phase.COMPLETED])
def test_an_empty_podgroup_whose_queue_is_missing_stays_what_it_is(least: int, phase: Phase) -> None:
    cluster = Cluster.of(nodes("n", 1), pod_group("g", least, queue="none", phase=phase))
    cluster.cycle()
    assert cluster.phase("g") is phase
    reason = cluster.cache.jobs["default/g"].reason
    assert (reason.code if reason else None) is (None if phase is Phase.COMPLETED else Code.QUEUE_MISSING)


def test_who_leaves_does_not_make_the_gang_larger() -> None:
    leaving = pods("g", 2, status=TaskStatus.RELEASING, node="n-0")
    small = queue("q", capability=resources(2))
    reason = reason_of(nodes("n", 1), small, pod_group("g", 2, queue="q"), leaving, pods("g", 2, first=2))
    assert reason.code is Code.WAITING_FOR_RELEASE


def test_the_class_decides_which_of_several_reasons_is_said() -> None:
    ranked = [
        Code.QUEUE_CLOSED,
        Code.LARGER_THAN_CLUSTER,
        Code.NOT_ENOUGH_PODS,
        Code.QUEUE_QUOTA,
        Code.NOT_ENOUGH_NODES,
    ]
    for position, code in enumerate(ranked):
        worst = dominant([Reason(each) for each in reversed(ranked[position:])])
        assert worst is not None
        assert worst.code is code


@pytest.mark.parametrize("code", list(Code))
def test_every_code_can_be_described_without_numbers(code: Code) -> None:
    assert describe(Reason(code))
    assert Reason(code).advice.value in ("wait", "change", "ask"), "those three are promised to scripts"


def verdicts(outcome: Outcome) -> dict[str, str]:
    return {key.partition("/")[2]: verdict.reason for key, verdict in outcome.pods.items()}


@pytest.mark.parametrize(
    ("specs", "unschedulable"),
    [
        pytest.param([*nodes("n", 2, cpu=1), *gang("g", 3)], {"g-w-2"}, id="only the member that finds no node"),
        pytest.param([*nodes("n", 1), *gang("g", 1, 5)], {"g-w-0"}, id="larger nodes would help"),
        pytest.param([*gang("g", 2)], {"g-w-0", "g-w-1"}, id="there are no nodes"),
        pytest.param([*nodes("n", 1, cpu=1), *gang("g", 2, min_member=1)], {"g-w-1"}, id="an extra member"),
        pytest.param([*nodes("n", 2, cpu=1), *gang("a", 2), *gang("g", 1)], {"g-w-0"}, id="promised and nodes full"),
        pytest.param(
            [*nodes("n", 2, cpu=1), *gang("a", 2), pod_group("g", 1), *pods("g", 1)],
            {"g-w-0"}, id="queue and nodes full",
        ),
        pytest.param(
            [node("n", 10), pod_group("a", 3, min_resources=resources(11)), *gang("g", 5)], set(), id="promised",
        ),
        pytest.param(
            [*nodes("n", 3), queue("q", capability=resources(3)), *gang("a", 2, queue="q"), *gang("g", 2, queue="q")],
            set(), id="quota buys no nodes",
        ),
        pytest.param([*nodes("n", 1), queue("q", capability=resources(1)), *gang("g", 2, queue="q")], set(), id="cap"),
        pytest.param([pod_group("g", 3), *pods("g", 2)], set(), id="incomplete"),
        pytest.param(
            [node("n"), pod_group("g", 3), *pods("g", 1, 9), pod("small", "g")],
            {"g-w-0"}, id="incomplete, and one that no node could hold",
        ),
        pytest.param([*pods("g", 2, gated=True), pod_group("g", 2)], set(), id="gated"),
        pytest.param([*gang("g", 1, queue="none")], set(), id="queue"),
    ],
)  # fmt: skip
def test_only_pods_that_more_nodes_would_help_say_unschedulable(specs: list[Spec], unschedulable: set[str]) -> None:
    """volcano#4710, #4030: the word that buys nodes is said exactly when nodes would help."""
    said = verdicts(Cluster.of(specs).cycle())
    assert {name for name, reason in said.items() if reason == "Unschedulable"} == unschedulable
    assert set(said.values()) <= {"", "Unschedulable"}


def test_a_cluster_that_is_promised_is_quota_and_nodes_help_only_where_they_are_full_too() -> None:
    """Quota ranks before room; and yet a cluster that is full under the overcommit plugin has to grow."""
    cluster = Cluster.of(node("n", 4), pod("hold", node="n", cpu=3.5), gang("w", 1, 3))
    outcome = cluster.cycle()
    reason = cluster.cache.jobs["default/w"].reason
    assert reason is not None
    assert (reason.code, reason.requested, reason.free, reason.limit) == (Code.CLUSTER_OVERCOMMIT, 3000, 1300, 4800)
    assert (reason.member, dict(reason.nodes)) == ("w-w-0", {"Insufficient cpu": 1})
    assert verdicts(outcome) == {"w-w-0": "Unschedulable"}


def test_a_verdict_that_is_no_longer_true_is_taken_back() -> None:
    cluster = Cluster.of(nodes("n", 1, cpu=1), queue("q"), gang("a", 1, queue="q"), gang("g", 1, queue="q"))
    assert verdicts(cluster.cycle()) == {"g-w-0": "Unschedulable"}
    assert not cluster.cycle().pods
    cluster.add(queue("q", capability=resources(1)))
    assert verdicts(cluster.cycle()) == {"g-w-0": ""}


def test_a_reason_names_what_ends_the_wait() -> None:
    assert Wake.NODES in reason_of(nodes("n", 1, cpu=1), gang("g", 1, 2)).wakes
    full = reason_of(
        nodes("n", 3), queue("q", capability=resources(2)), gang("a", 1, 2, queue="q"), gang("g", 1, 1, queue="q")
    )
    assert full.reason_class is ReasonClass.QUOTA
    assert Wake.QUEUE in full.wakes


@pytest.mark.parametrize("code", list(Code))
def test_whatever_a_gang_waits_for_what_ends_the_wait_is_said(code: Code) -> None:
    assert Reason(code).awaits
    assert Reason(code, wakes=(Wake.DEVICES,)).awaits == (Wake.DEVICES,)


def test_who_waits_for_a_queue_to_be_made_is_told_so() -> None:
    assert reason_of(gang("g", 1, queue="none")).awaits == (Wake.MENDED_QUEUE,)


def test_a_pod_that_waits_for_others_says_so_once_however_they_come() -> None:
    cluster = Cluster.of(nodes("n", 1), pod_group("g", 5))
    said: list[str] = []
    for index in range(4):
        cluster.add(pods("g", 1, first=index))
        said += cluster.cycle().pods
    assert sorted(said) == [f"default/g-w-{index}" for index in range(4)]
    verdict = cluster.cache.tasks["uid-g-w-0"].verdict
    assert verdict is not None
    assert verdict.message == "4 of 5 pods exist"


@pytest.mark.parametrize(
    ("happens", "said"),
    [
        pytest.param(nodes("full", 1, cpu=1), set(), id="another node is full"),
        pytest.param(pod_group("g", 3), {f"g-w-{n}" for n in range(4)}, id="it asks for fewer members"),
        pytest.param(
            [pod(f"g-w-{index}", "g", 5) for index in range(4)], {f"g-w-{n}" for n in range(4)}, id="for more"
        ),
    ],
)
def test_a_parked_pod_says_something_new_for_its_own_affairs_only(happens: list[Spec] | Spec, said: set[str]) -> None:
    """Numbers of nodes change with each that fills up; a pod is not written for that."""
    cluster = Cluster.of(nodes("n", 1), gang("g", 4, 3))
    cluster.cycle()
    cluster.add(happens)
    cluster.cache.touch(cluster.cache.jobs["default/g"])
    assert {key.partition("/")[2] for key in cluster.cycle().pods} == said
