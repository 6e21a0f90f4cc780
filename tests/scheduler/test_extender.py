"""The plugin `extender` against a real HTTP server: one verb after the other, and what its silence means."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.engine.extender_client import HttpExtenderClient
from muster.scheduler.conf import SchedulerConfiguration
from muster.scheduler.extender_client import Answer, ExtenderError
from muster.scheduler.outcome import Outcome
from muster.scheduler.reasons import Code, Reason, ReasonClass, describe
from muster.scheduler.specs import Phase, PodVerdict
from muster.testing import (
    Cluster,
    Spec,
    bindings,
    companion,
    configuration,
    evictions,
    gang,
    node,
    nodes,
    plugin,
    pod,
    pods,
    queue,
)
from tests.extender_server import ExtenderServer, Reply, serving
from tests.scheduler.audit import audit

PATIENT = "10s"
VERBS = (
    "onSessionOpen",
    "onSessionClose",
    "predicate",
    "prioritize",
    "preemptable",
    "reclaimable",
    "queueOverused",
    "jobEnqueueable",
    "jobReady",
    "allocateFunc",
    "deallocateFunc",
)


class TimedClient:
    """Asks over HTTP, and says that each answer took so many seconds: no test depends on how busy the machine is."""

    def __init__(self, client: HttpExtenderClient, seconds: float = 0.001) -> None:
        self.client = client
        self.seconds = seconds
        self.spent = 0.0

    def post(self, url: str, body: bytes, timeout: float) -> Answer:
        self.spent += self.seconds
        try:
            return Answer(self.client.post(url, body, timeout).body, self.seconds)
        except ExtenderError as error:
            raise ExtenderError(error.problem, self.seconds) from error

    def slowed(self, seconds: float) -> TimedClient:
        return TimedClient(self.client, seconds)


@dataclass
class World:
    """An extender that is asked by a cluster's scheduler."""

    server: ExtenderServer
    client: TimedClient
    arguments: dict[str, Any] = field(default_factory=dict)

    def arrange(self, *specs: Any, actions: str = "enqueue, allocate, backfill", **replies: Reply) -> Cluster:
        """A cluster whose extender answers these verbs so, and is asked no others."""
        self.server.replies.update(replies)
        conf = self.configuration(actions, *replies)
        return Cluster.of(*specs, configuration=conf).connected(self.client)

    def arrange_one(self, verb: str, reply: Reply, *specs: Any) -> Cluster:
        """A cluster whose extender is asked this verb only."""
        return self.arrange(*specs, **{verb: reply})  # type: ignore[arg-type]

    def configuration(self, actions: str, *verbs: str) -> SchedulerConfiguration:
        arguments = {"extender.urlPrefix": self.server.url, "extender.httpTimeout": PATIENT, **self.arguments}
        arguments |= {f"extender.{verb}Verb": verb for verb in verbs}
        extender = plugin("extender", arguments)
        anybody = plugin("gang", enablePreemptable=False, enableReclaimable=False)
        return configuration(actions, ["priority", anybody], ["predicates", extender, "nodeorder"])

    def asked(self, verb: str) -> int:
        return self.server.verbs().count(verb)


@pytest.fixture
def world() -> Iterator[World]:
    client = HttpExtenderClient()
    with serving() as server:
        yield World(server, TimedClient(client))
        client.close()


def reason_of(cluster: Cluster, group: str = "g") -> Reason:
    reason = cluster.cache.jobs[f"default/{group}"].reason
    assert reason is not None
    return reason


def refuse_nodes(*names: str, why: str = "no licence") -> Reply:
    return lambda question: {"status": why if question["node"]["Name"] in names else "", "code": 2}


# --- predicate ---


def test_a_node_that_the_extender_refuses_is_not_used(world: World) -> None:
    cluster = world.arrange(nodes("n", 2), gang("g", 1), predicate=refuse_nodes("n-0"))
    assert bindings(cluster.cycle()) == {"g-w-0": "n-1"}
    question = world.server.bodies("predicate")[0]
    assert (question["task"]["Name"], question["task"]["Namespace"]) == ("g-w-0", "default")
    assert question["node"]["Idle"]["MilliCPU"] == 4000


@pytest.mark.parametrize(
    "answer",
    [
        {"status": "no licence"},
        {"Status": "no licence", "Code": 1},
        {"errorMessage": "no licence"},
        {"status": [{"Code": 0, "Reason": ""}, {"Code": 2, "Reason": "no licence"}]},
    ],
)
def test_a_refusal_of_any_version_is_understood_and_named(world: World, answer: dict[str, Any]) -> None:
    cluster = world.arrange(nodes("n", 2), gang("g", 1), predicate=lambda _: answer)
    assert bindings(cluster.cycle()) == {}
    reason = reason_of(cluster)
    assert reason.code is Code.NOT_ENOUGH_NODES
    assert reason.nodes == (("node(s) that the scheduler's extender refuses: no licence", 2),)
    assert cluster.cache.tasks["uid-g-w-0"].verdict == PodVerdict("Pending", "Unschedulable", describe(reason))


@pytest.mark.parametrize("answer", [{}, None, {"status": "", "code": 3}, {"status": []}, {"status": [{"Code": 0}]}])
def test_an_answer_without_a_message_admits_the_node(world: World, answer: Any) -> None:
    cluster = world.arrange(nodes("n", 1), gang("g", 1), predicate=lambda _: answer)
    assert bindings(cluster.cycle()) == {"g-w-0": "n-0"}


def test_each_pod_is_asked_about_by_itself(world: World) -> None:
    """Pods alike in all that the scheduler knows: the extender tells them apart."""
    refuse: Reply = lambda question: {"status": "not this one" if question["task"]["Name"] == "g-w-0" else ""}  # noqa: E731
    cluster = world.arrange(nodes("n", 1), gang("g", 2, min_member=1), predicate=refuse)
    assert bindings(cluster.cycle()) == {"g-w-1": "n-0"}


def test_a_refusal_of_one_gang_is_none_of_another_alike(world: World) -> None:
    refuse: Reply = lambda question: {"status": "no" if question["task"]["Job"] == "default/a" else ""}  # noqa: E731
    cluster = world.arrange(nodes("n", 1), gang("a", 1), gang("b", 1), predicate=refuse)
    assert bindings(cluster.cycle()) == {"b-w-0": "n-0"}


def test_a_gang_one_of_whose_members_is_refused_is_not_bound_at_all(world: World) -> None:
    refuse: Reply = lambda question: {"status": "no" if question["task"]["Name"] == "g-w-1" else ""}  # noqa: E731
    cluster = world.arrange(nodes("n", 2), gang("g", 2), predicate=refuse)
    assert bindings(cluster.cycle()) == {}
    assert reason_of(cluster).member == "g-w-1"


def test_the_same_question_is_asked_once_in_a_cycle_and_again_in_the_next(world: World) -> None:
    cluster = world.arrange(nodes("n", 2), gang("g", 2), gang("h", 1), predicate=lambda _: {"status": "no"})
    cluster.cycle()
    questions = [(each["task"]["UID"], each["node"]["Name"]) for each in world.server.bodies("predicate")]
    assert len(questions) == len(set(questions)) == 6
    cluster.cycle(seconds=1)
    assert len(world.server.bodies("predicate")) == 12


def test_a_member_is_shown_the_nodes_with_the_others_in_their_places(world: World) -> None:
    cluster = world.arrange(nodes("n", 1), gang("g", 2), predicate=lambda _: {})
    cluster.cycle()
    shown = [
        (each["node"]["Idle"]["MilliCPU"], sorted(each["node"]["Tasks"])) for each in world.server.bodies("predicate")
    ]
    assert shown == [(4000, []), (3000, ["default/g-w-0"])]


def test_only_tasks_that_ask_for_a_managed_resource_are_asked_about(world: World) -> None:
    world.arguments["extender.managedResources"] = ["nvidia.com/gpu", "example.com/other"]
    cluster = world.arrange(nodes("n", 1, gpu=4), gang("g", 1, gpu=1), gang("h", 1), predicate=lambda _: {})
    assert sorted(bindings(cluster.cycle())) == ["g-w-0", "h-w-0"]
    assert [each["task"]["Name"] for each in world.server.bodies("predicate")] == ["g-w-0"]
    plain = {name: cluster.cache.tasks[f"uid-{name}-w-0"].shape.plain for name in ("g", "h")}
    assert plain == {"g": False, "h": True}


@pytest.mark.parametrize(
    ("verb", "answer"),
    [("prioritize", {"errorMessage": "no"}), ("allocateFunc", {"errorMessage": "no"}), ("preemptable", {"status": -1})],
)
def test_no_question_about_a_task_is_asked_of_one_that_is_not_managed(world: World, verb: str, answer: Any) -> None:
    world.arguments["extender.managedResources"] = ["nvidia.com/gpu"]
    cluster = contested(world, "preempt", **{verb: lambda _: answer})
    cluster.configuration = with_victims_of_all(cluster.configuration)
    assert len(evictions(cluster.cycle())) == 1
    assert world.server.asked == []


def test_questions_about_jobs_and_queues_are_asked_whatever_is_managed(world: World) -> None:
    world.arguments["extender.managedResources"] = ["nvidia.com/gpu"]
    cluster = world.arrange(
        nodes("n", 1),
        gang("g", 1),
        jobEnqueueable=lambda _: {},
        jobReady=lambda _: {"status": True},
        queueOverused=lambda _: {},
    )
    assert bindings(cluster.cycle()) == {"g-w-0": "n-0"}
    assert {"jobEnqueueable", "jobReady", "queueOverused"} == set(world.server.verbs())


def test_room_for_a_companion_is_nobodys_business_before_it_is_a_pod(world: World) -> None:
    cluster = world.arrange(nodes("n", 1), gang("g", 1, companions=[companion()]), predicate=lambda _: {})
    cluster.settle(cluster.cycle())
    assert {each["task"]["Name"] for each in world.server.bodies("predicate")} == {"g-w-0"}
    cluster.add(pod("g-submit", "g", cpu=0.05, role="submittergroup"))
    assert bindings(cluster.cycle()) == {"g-submit": "n-0"}
    assert world.server.bodies("predicate")[-1]["task"]["Name"] == "g-submit"


# --- prioritize ---


def test_scores_decide_between_nodes_to_the_fraction_of_a_point(world: World) -> None:
    scores = {"nodeScore": {"n-0": 250.1, "n-1": 250.4, "elsewhere": 900}}
    cluster = world.arrange(nodes("n", 3), gang("g", 1), prioritize=lambda _: scores)
    assert bindings(cluster.cycle()) == {"g-w-0": "n-1"}
    question = world.server.bodies("prioritize")[0]
    assert sorted(each["Name"] for each in question["nodes"]) == ["n-0", "n-1", "n-2"]


def test_only_nodes_that_pass_are_scored_and_one_alone_is_not(world: World) -> None:
    cluster = world.arrange(
        nodes("n", 3), gang("g", 1), predicate=refuse_nodes("n-0"), prioritize=lambda _: {"nodeScore": {"n-2": 500}}
    )
    assert bindings(cluster.cycle()) == {"g-w-0": "n-2"}
    assert [len(each["nodes"]) for each in world.server.bodies("prioritize")] == [2]
    cluster = world.arrange(nodes("n", 1), gang("g", 1), prioritize=lambda _: 500)
    assert bindings(cluster.cycle()) == {"g-w-0": "n-0"}


@pytest.mark.parametrize("ignorable", [True, False])
@pytest.mark.parametrize(
    ("answer", "why"), [({"nodeScore": {}, "errorMessage": "no model"}, "no model"), ({}, "no scores given")]
)
def test_a_task_that_the_extender_will_not_score_waits(
    world: World, ignorable: bool, answer: dict[str, Any], why: str
) -> None:
    world.arguments["extender.ignorable"] = ignorable
    cluster = world.arrange(nodes("n", 2), gang("g", 1), prioritize=lambda _: answer)
    assert bindings(cluster.cycle()) == {}
    assert describe(reason_of(cluster)) == f"the scheduler's extender refuses g-w-0: {why}"


# --- admission ---


@pytest.mark.parametrize(("status", "phase"), [(1, Phase.INQUEUE), (0, Phase.INQUEUE), (-1, Phase.PENDING)])
def test_the_extender_votes_on_admission(world: World, status: int, phase: Phase) -> None:
    cluster = world.arrange(
        nodes("n", 1), gang("g", 1, cpu=2), actions="enqueue", jobEnqueueable=lambda _: {"status": status}
    )
    cluster.cycle()
    assert cluster.phase("g") is phase
    assert world.server.bodies("jobEnqueueable")[0]["job"]["PodGroup"]["Spec"]["MinResources"] == {"cpu": "2"}
    if status < 0:
        reason = reason_of(cluster)
        assert describe(reason) == "the scheduler's extender refuses it: it may not be admitted"
        assert (reason.reason_class, reason.more_nodes_help) == (ReasonClass.INCOMPLETE, False)


def test_each_gang_is_asked_about_though_one_like_it_was_refused(world: World) -> None:
    vote: Reply = lambda question: {"status": -1 if question["job"]["Name"] == "a" else 1}  # noqa: E731
    cluster = world.arrange(nodes("n", 1), gang("a", 1), gang("b", 1), jobEnqueueable=vote)
    assert bindings(cluster.cycle()) == {"b-w-0": "n-0"}
    cluster.cycle(seconds=1)
    assert [each["job"]["Name"] for each in world.server.bodies("jobEnqueueable")] == ["a", "b", "a"]


# --- ready ---


def test_a_gang_is_bound_only_when_the_extender_calls_it_ready(world: World) -> None:
    def ready(question: Any) -> dict[str, Any]:
        return {"status": sum(task["Status"] > 1 for task in question["job"]["Tasks"].values()) >= 2}

    cluster = world.arrange(nodes("n", 1), gang("g", 3, min_member=1), jobReady=ready)
    assert len(bindings(cluster.cycle())) == 3
    assert (
        min(
            sum(task["Status"] > 1 for task in each["job"]["Tasks"].values())
            for each in world.server.bodies("jobReady")
        )
        == 1
    )


def test_an_extra_member_that_would_not_leave_the_gang_ready_waits_and_says_so(world: World) -> None:
    def ready(question: Any) -> dict[str, Any]:
        return {"status": sum(task["Status"] > 1 for task in question["job"]["Tasks"].values()) < 2}

    cluster = world.arrange(nodes("n", 1), gang("g", 2, min_member=1), jobReady=ready)
    assert bindings(cluster.cycle()) == {"g-w-0": "n-0"}
    assert reason_of(cluster).code is Code.EXTENDER_REFUSED


def test_a_gang_that_is_never_ready_waits_and_says_so(world: World) -> None:
    cluster = world.arrange(nodes("n", 1), gang("g", 1), gang("h", 1), jobReady=lambda _: {"status": False})
    assert bindings(cluster.cycle()) == {}
    for group in ("g", "h"):
        assert describe(reason_of(cluster, group)) == "the scheduler's extender refuses it: it is not ready to run"
    assert {each["job"]["Name"] for each in world.server.bodies("jobReady")} == {"g", "h"}


def test_an_extender_can_not_call_ready_what_is_below_its_minimum(world: World) -> None:
    cluster = world.arrange(nodes("n", 1, cpu=1), gang("g", 2), jobReady=lambda _: {"status": True})
    assert bindings(cluster.cycle()) == {}


# --- queues ---


def test_a_queue_that_the_extender_calls_overused_gets_nothing(world: World) -> None:
    overused: Reply = lambda question: {"overused": question["queue"]["Name"] == "greedy"}  # noqa: E731
    cluster = world.arrange(
        nodes("n", 1), queue("greedy"), gang("g", 1, queue="greedy"), gang("h", 1), queueOverused=overused
    )
    assert bindings(cluster.cycle()) == {"h-w-0": "n-0"}
    assert describe(reason_of(cluster)) == "the scheduler's extender refuses queue greedy: it uses too much"


def test_the_extender_sees_what_the_queue_uses_at_that_moment(world: World) -> None:
    """Volcano shows what the status said when the cycle began."""
    overused: Reply = lambda question: {"overused": "cpu" in question["queue"]["Allocated"]}  # noqa: E731
    cluster = world.arrange(nodes("n", 1), gang("g", 1), gang("h", 1), queueOverused=overused)
    assert bindings(cluster.cycle()) == {"g-w-0": "n-0"}


# --- evictions ---


def contested(world: World, action: str, **replies: Reply) -> Cluster:
    """A full node, and a gang that starves: `low` runs in its own queue, `other` in another."""
    full: list[Spec] = [*pods("low", 2, node="n"), *pods("other", 2, node="n")]
    cluster = world.arrange(
        node("n", cpu=4),
        queue("q"),
        queue("r"),
        gang("low", 2, min_member=0, queue="q"),
        gang("other", 2, min_member=0, queue="r"),
        full,
        gang("g", 1, queue="q"),
        actions=f"enqueue, allocate, {action}",
        **replies,
    )
    cluster.cache.jobs["default/g"].phase = Phase.INQUEUE
    return cluster


@pytest.mark.parametrize(
    ("action", "verb", "candidates"),
    [("preempt", "preemptable", ["low-w-0", "low-w-1"]), ("reclaim", "reclaimable", ["other-w-0", "other-w-1"])],
)
def test_victims_are_those_that_the_extender_names(world: World, action: str, verb: str, candidates: list[str]) -> None:
    cluster = contested(
        world, action, **{verb: lambda _: {"status": 1, "victims": [{"UID": f"uid-{candidates[0]}"}, {"UID": "else"}]}}
    )
    assert evictions(cluster.cycle()) == {candidates[0]}
    question = world.server.bodies(verb)[0]
    assert question["evictor"]["Name"] == "g-w-0"
    assert sorted(each["Name"] for each in question["evictees"]) == candidates


@pytest.mark.parametrize(
    ("answer", "evicted"),
    [({"status": 0}, 1), ({"status": 1}, 0), ({"status": -1, "victims": []}, 0)],
    ids=["abstains: the others decide", "permits nobody", "rejects"],
)
def test_the_extender_can_abstain_or_refuse_all_victims(world: World, answer: dict[str, Any], evicted: int) -> None:
    cluster = contested(world, "preempt", preemptable=lambda _: answer)
    cluster.configuration = with_victims_of_all(cluster.configuration)
    assert len(evictions(cluster.cycle())) == evicted


def with_victims_of_all(found: SchedulerConfiguration) -> SchedulerConfiguration:
    """The same, with a plugin in the extender's tier that lets everybody go."""
    conformance = configuration("enqueue", ["conformance"]).tiers[0][0]
    first, second = found.tiers
    return SchedulerConfiguration(found.actions, (first, (conformance, *second)), found.arguments)


# --- places ---


def test_the_extender_is_told_of_every_place_and_of_every_one_that_is_taken_back(world: World) -> None:
    cluster = world.arrange(
        nodes("n", 1, cpu=2), gang("g", 3), gang("h", 1), allocateFunc=lambda _: {}, deallocateFunc=lambda _: {}
    )
    assert bindings(cluster.cycle()) == {"h-w-0": "n-0"}
    balance: dict[str, int] = {}
    for verb, body in world.server.asked:
        assert body["task"]["NodeName"] == "n-0"
        name = body["task"]["Name"]
        balance[name] = balance.get(name, 0) + (1 if verb == "allocateFunc" else -1)
        assert balance[name] in (0, 1)
    assert {name: places for name, places in balance.items() if places} == {"h-w-0": 1}
    assert {"g-w-0", "g-w-1"} <= set(balance)


@pytest.mark.parametrize("ignorable", [True, False])
def test_a_place_that_the_extender_complains_of_is_given_up(world: World, ignorable: bool) -> None:
    world.arguments["extender.ignorable"] = ignorable
    complain: Reply = lambda question: {"errorMessage": "no device" if question["task"]["Name"] == "g-w-1" else ""}  # noqa: E731
    cluster = world.arrange(
        nodes("n", 1), gang("g", 2), gang("h", 1), allocateFunc=complain, deallocateFunc=lambda _: {}
    )
    assert bindings(cluster.cycle()) == {"h-w-0": "n-0"}
    assert describe(reason_of(cluster)) == "the scheduler's extender refuses g-w-1: no device"
    assert cluster.cache.nodes["n-0"].used.milli_cpu == 1000


def test_answers_are_not_believed_any_more_once_a_place_was_told(world: World) -> None:
    """It keeps the account of its devices by what it is told, and thinks of one model otherwise before and after."""
    devices = {"free": 1}

    def allocate(_: Any) -> dict[str, Any]:
        devices["free"] -= 1
        return {}

    def deallocate(_: Any) -> dict[str, Any]:
        devices["free"] += 1
        return {}

    cluster = world.arrange(
        nodes("n", 1),
        gang("g", 2),
        gang("h", 1),
        predicate=lambda _: {"status": "" if devices["free"] else "no device"},
        allocateFunc=allocate,
        deallocateFunc=deallocate,
    )
    assert bindings(cluster.cycle()) == {"h-w-0": "n-0"}
    assert devices == {"free": 0}


def test_evictions_are_told_too(world: World) -> None:
    cluster = contested(world, "preempt", allocateFunc=lambda _: {}, deallocateFunc=lambda _: {})
    cluster.configuration = with_victims_of_all(cluster.configuration)
    evicted = evictions(cluster.cycle())
    assert len(evicted) == 1
    assert evicted <= {each["task"]["Name"] for each in world.server.bodies("deallocateFunc")}


# --- the cycle ---


def test_the_extender_is_told_when_a_cycle_begins_and_when_it_ends(world: World) -> None:
    cluster = world.arrange(
        nodes("n", 1),
        gang("g", 1),
        onSessionOpen=lambda _: b"whatever",
        predicate=lambda _: {},
        deallocateFunc=lambda _: {},
        onSessionClose=lambda _: b"",
    )
    assert bindings(cluster.cycle()) == {"g-w-0": "n-0"}
    assert world.server.verbs() == ["onSessionOpen", "predicate", "onSessionClose"]
    opened, _, closed = [body for _, body in world.server.asked]
    assert sorted(opened["Jobs"]) == ["default/g"]
    assert sorted(opened["Nodes"]) == ["n-0"]
    assert closed == {}


def test_nothing_is_asked_after_the_end(world: World) -> None:
    cluster = world.arrange(
        nodes("n", 1, cpu=1),
        gang("g", 2),
        onSessionClose=lambda _: {},
        predicate=lambda _: {},
        allocateFunc=lambda _: {},
        deallocateFunc=lambda _: {},
    )
    cluster.cycle()
    assert world.server.verbs()[-1] == "onSessionClose"
    assert world.asked("onSessionClose") == 1


# --- silence ---

SILENT: dict[str, Reply | str] = {
    "an error": lambda _: 500,
    "no JSON": lambda _: b"<html>",
    "no object": lambda _: [1],
    "nothing": lambda _: b"",
    "a hanging answer": "hang",
}


def silent(world: World, how: str) -> Reply:
    found = SILENT[how]
    if isinstance(found, str):
        world.arguments["extender.httpTimeout"] = "50ms"
        return world.server.hang
    return found


@pytest.mark.parametrize("how", SILENT)
@pytest.mark.parametrize("verb", ["predicate", "prioritize", "jobReady", "allocateFunc", "queueOverused"])
def test_an_extender_that_does_not_answer_keeps_gangs_waiting_unless_it_may_be_ignored(
    world: World, verb: str, how: str
) -> None:
    reply = silent(world, how)
    cluster = world.arrange_one(verb, reply, nodes("n", 2), gang("g", 1))
    assert bindings(cluster.cycle()) == {}
    reason = reason_of(cluster)
    assert reason.code is Code.EXTENDER_UNAVAILABLE
    assert cluster.cache.tasks["uid-g-w-0"].verdict == PodVerdict("Pending", "", describe(reason))
    world.arguments["extender.ignorable"] = True
    cluster = world.arrange_one(verb, reply, nodes("n", 2), gang("g", 1))
    assert len(bindings(cluster.cycle())) == 1


@pytest.mark.parametrize("ignorable", [True, False])
def test_admission_without_an_answer(world: World, ignorable: bool) -> None:
    world.arguments["extender.ignorable"] = ignorable
    cluster = world.arrange(nodes("n", 1), gang("g", 1), actions="enqueue", jobEnqueueable=lambda _: 500)
    cluster.cycle()
    assert cluster.phase("g") is (Phase.INQUEUE if ignorable else Phase.PENDING)
    if not ignorable:
        assert describe(reason_of(cluster)) == "the scheduler's extender can't be asked: HTTP status 500"


@pytest.mark.parametrize("ignorable", [True, False])
def test_evictions_without_an_answer(world: World, ignorable: bool) -> None:
    world.arguments["extender.ignorable"] = ignorable
    cluster = contested(world, "preempt", preemptable=lambda _: 500)
    cluster.configuration = with_victims_of_all(cluster.configuration)
    assert len(evictions(cluster.cycle())) == (1 if ignorable else 0)


@pytest.mark.parametrize("ignorable", [True, False])
def test_a_cycle_whose_beginning_the_extender_did_not_hear(world: World, ignorable: bool) -> None:
    world.arguments["extender.ignorable"] = ignorable
    cluster = world.arrange(nodes("n", 1), gang("g", 1), onSessionOpen=lambda _: 500, predicate=lambda _: {})
    assert bindings(cluster.cycle()) == ({"g-w-0": "n-0"} if ignorable else {})
    assert world.asked("predicate") == (1 if ignorable else 0)
    if not ignorable:
        assert reason_of(cluster).code is Code.EXTENDER_UNAVAILABLE


@pytest.mark.parametrize("ignorable", [True, False])
def test_end_and_removals_are_told_and_nothing_hangs_on_the_answer(world: World, ignorable: bool) -> None:
    world.arguments["extender.ignorable"] = ignorable
    cluster = world.arrange(
        nodes("n", 1, cpu=1), gang("g", 2), gang("h", 1), onSessionClose=lambda _: 500, deallocateFunc=lambda _: 500
    )
    assert bindings(cluster.cycle()) == {"h-w-0": "n-0"}


@pytest.mark.parametrize(
    ("verb", "answer"),
    [
        ("predicate", {"status": 1}),
        ("predicate", {"status": [1]}),
        ("predicate", {"status": "", "code": "2"}),
        ("prioritize", {"nodeScore": {"n-0": "much"}}),
        ("prioritize", b'{"nodeScore": {"n-0": NaN}}'),
        ("prioritize", {"nodeScore": {"n-0": 1e300}}),
        ("prioritize", {"nodeScore": [1]}),
        ("jobReady", {"status": "yes"}),
        ("jobReady", {"status": 1}),
        ("queueOverused", {"overused": 0}),
        ("allocateFunc", {"errorMessage": {}}),
    ],
)
def test_an_answer_of_a_wrong_type_is_none(world: World, verb: str, answer: Any) -> None:
    cluster = world.arrange_one(verb, lambda _: answer, nodes("n", 2), gang("g", 1))
    assert bindings(cluster.cycle()) == {}
    assert reason_of(cluster).code is Code.EXTENDER_UNAVAILABLE


def test_after_three_failures_in_a_row_nothing_more_is_asked_in_the_cycle(world: World) -> None:
    cluster = world.arrange(nodes("n", 4), [gang(f"g{each}", 4) for each in range(20)], predicate=lambda _: 500)
    outcome = cluster.cycle()
    assert bindings(outcome) == {}
    assert world.asked("predicate") == 3
    assert {job.reason.code for job in cluster.cache.jobs.values() if job.reason} == {Code.EXTENDER_UNAVAILABLE}
    assert outcome.wake_at == cluster.now + 3 * world.client.seconds + 1


def test_a_dead_extender_is_tried_again_ever_later_and_once_each_time(world: World) -> None:
    cluster = world.arrange(nodes("n", 1), [gang(f"g{each}", 1) for each in range(5)], predicate=lambda _: 500)
    pauses, asked = [], []
    outcome = cluster.cycle()
    for _ in range(8):
        assert outcome.wake_at is not None
        pauses.append(round(outcome.wake_at - cluster.now))
        cluster.now = outcome.wake_at
        before = world.asked("predicate")
        outcome = cluster.cycle()
        asked.append(world.asked("predicate") - before)
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
    assert asked == [1] * 8


def test_gangs_that_the_extender_does_not_mind_go_on_while_it_is_dead(world: World) -> None:
    world.arguments["extender.managedResources"] = "nvidia.com/gpu"
    cluster = world.arrange(
        nodes("n", 1, gpu=8), [gang(f"g{each}", 1, gpu=1) for each in range(5)], gang("h", 1), predicate=lambda _: 500
    )
    assert bindings(cluster.cycle()) == {"h-w-0": "n-0"}


def test_everything_goes_on_at_once_when_the_extender_answers_again(world: World) -> None:
    cluster = world.arrange(nodes("n", 2), [gang(f"g{each}", 1) for each in range(5)], predicate=lambda _: 500)
    outcome = cluster.cycle()
    world.server.replies["predicate"] = lambda _: {}
    assert outcome.wake_at is not None
    cluster.now = outcome.wake_at
    assert len(bindings(cluster.cycle())) == 5


def test_a_gang_that_wants_victims_waits_for_room_though_the_extender_can_not_be_asked(world: World) -> None:
    """More nodes would help it, and an autoscaler has to know."""
    cluster = contested(world, "preempt", preemptable=lambda _: 500)
    outcome = cluster.cycle()
    assert reason_of(cluster).code is Code.NOT_ENOUGH_NODES
    assert outcome.wake_at == cluster.now + 1


def test_a_cycle_that_has_no_time_for_the_beginning_only_puts_off(world: World) -> None:
    slow = world.client.slowed(5)
    cluster = world.arrange(nodes("n", 1), gang("g", 1), onSessionOpen=lambda _: {}, predicate=lambda _: {})
    cluster.extenders = slow
    for _ in range(2):
        outcome = cluster.cycle()
        assert reason_of(cluster).code is Code.WAITING_FOR_TURN
    assert outcome.wake_at == cluster.now + 10
    assert world.server.verbs() == ["onSessionOpen"]


# --- asking again ---


@pytest.mark.parametrize(
    ("verb", "no", "yes"),
    [
        ("predicate", {"status": "no licence"}, {}),
        ("prioritize", {"errorMessage": "no model"}, {"nodeScore": {}}),
        ("jobEnqueueable", {"status": -1}, {"status": 1}),
        ("jobReady", {"status": False}, {"status": True}),
        ("queueOverused", {"overused": True}, {"overused": False}),
        ("allocateFunc", {"errorMessage": "no device"}, {}),
    ],
)
def test_a_gang_that_was_refused_is_placed_when_the_extender_thinks_otherwise(
    world: World, verb: str, no: Any, yes: Any
) -> None:
    """Nothing changes in the cluster."""
    cluster = world.arrange_one(verb, lambda _: no, nodes("n", 2), gang("g", 2), gang("h", 1))
    outcome = cluster.cycle()
    assert outcome.wake_at == cluster.now + 1
    cluster.now = outcome.wake_at
    outcome = cluster.cycle()
    assert bindings(outcome) == {}
    assert outcome.wake_at == cluster.now + 2
    assert outcome.pod_groups == {}, "nothing is new, so nothing is written (P8)"
    assert outcome.pods == {}
    world.server.replies[verb] = lambda _: yes
    cluster.now = outcome.wake_at
    assert sorted(bindings(cluster.cycle())) == ["g-w-0", "g-w-1", "h-w-0"]


def test_victims_that_were_refused_are_asked_for_again(world: World) -> None:
    cluster = contested(world, "preempt", preemptable=lambda _: {"status": -1})
    cluster.configuration = with_victims_of_all(cluster.configuration)
    outcome = cluster.cycle()
    assert outcome.wake_at == cluster.now + 1
    world.server.replies["preemptable"] = lambda question: {"status": 1, "victims": question["evictees"]}
    cluster.now = outcome.wake_at
    assert len(evictions(cluster.cycle())) == 1


def test_a_refused_gang_is_asked_about_at_most_once_a_minute_when_it_is_refused_for_long(world: World) -> None:
    cluster = world.arrange(nodes("n", 1), gang("g", 1), predicate=lambda _: {"status": "no"})
    pauses = []
    for _ in range(8):
        outcome = cluster.cycle()
        assert outcome.wake_at is not None
        pauses.append(outcome.wake_at - cluster.now)
        cluster.now = outcome.wake_at
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]


def test_a_change_in_the_cluster_is_no_reason_to_wait_longer(world: World) -> None:
    cluster = world.arrange(nodes("n", 1), gang("g", 1), predicate=lambda _: {"status": "no"})
    first = cluster.cycle().wake_at
    cluster.add(node("another"))
    assert cluster.cycle(seconds=0.5).wake_at == first
    assert world.asked("predicate") == 3


def test_gangs_that_are_gone_have_no_deadlines(world: World) -> None:
    cluster = world.arrange(nodes("n", 1), gang("g", 1), predicate=lambda _: {"status": "no"})
    cluster.cycle()
    cluster.delete("g-w-0")
    cluster.cache.remove_pod_group("default/g")
    assert cluster.cycle(seconds=1).wake_at is None


# --- what it costs, and what is said ---


def test_an_extender_with_too_much_to_answer_lets_the_rest_wait_its_turn(world: World) -> None:
    """Its answers take their time, so one cycle can't ask all; none is refused for that, and each gets its turn."""
    slow = world.client.slowed(0.3)
    cluster = world.arrange(nodes("n", 1, cpu=100), [gang(f"g{each}", 1) for each in range(20)], predicate=lambda _: {})
    cluster.extenders = slow
    placed: list[int] = []
    for _ in range(20):
        outcome = cluster.cycle()
        placed.append(len(bindings(outcome)))
        waiting = [job.reason for job in cluster.cache.jobs.values() if job.reason]
        assert {reason.code for reason in waiting} <= {Code.WAITING_FOR_TURN}
        if not waiting:
            break
        assert outcome.wake_at is not None
        assert outcome.wake_at >= cluster.now + 2 * placed[-1] * slow.seconds - 0.01, "as long a rest as it took"
        assert "extender" in describe(waiting[0])
        cluster.now = outcome.wake_at
    assert sum(placed) == 20
    assert max(placed) == 7


def test_a_gang_about_which_not_all_could_be_asked_waits_for_its_turn_and_for_no_more_nodes(world: World) -> None:
    refuse: Reply = lambda question: {"status": "no" if question["task"]["Job"] == "default/b" else ""}  # noqa: E731
    cluster = world.arrange(nodes("n", 20), gang("a", 1), gang("b", 1), predicate=refuse)
    cluster.extenders = world.client.slowed(0.9)
    assert list(bindings(cluster.cycle())) == ["a-w-0"]
    assert world.asked("predicate") == 5
    assert reason_of(cluster, "b").code is Code.WAITING_FOR_TURN
    verdict = cluster.cache.tasks["uid-b-w-0"].verdict
    assert verdict is not None
    assert verdict.reason == "", "an autoscaler would buy nodes"


def test_a_gang_that_would_take_all_the_time_there_is_waits_and_the_others_do_not(world: World) -> None:
    slow = world.client.slowed(0.3)
    refuse: Reply = lambda question: {"status": "no" if question["task"]["Job"] == "default/giant" else ""}  # noqa: E731
    cluster = world.arrange(nodes("n", 30), gang("giant", 1), gang("h", 1), predicate=refuse)
    cluster.extenders = slow
    outcome = cluster.cycle()
    refusal = "the scheduler's extender refuses it: to ask all about it takes longer than 4 s"
    assert describe(reason_of(cluster, "giant")) == refusal
    assert slow.spent < 5
    placed: dict[str, str] = {}
    for _ in range(3):
        assert outcome.wake_at is not None
        cluster.now = outcome.wake_at
        outcome = cluster.cycle()
        placed |= bindings(outcome)
    assert list(placed) == ["h-w-0"]


def test_without_a_client_the_plugin_takes_no_part(world: World) -> None:
    cluster = world.arrange(nodes("n", 1), gang("g", 1))
    cluster.configuration = world.configuration("enqueue, allocate, preempt, reclaim", *VERBS)
    cluster.extenders = None
    assert bindings(cluster.cycle()) == {"g-w-0": "n-0"}
    assert world.server.asked == []
    assert cluster.cache.tasks["uid-g-w-0"].shape.plain


def test_without_verbs_nobody_is_asked_and_nothing_costs_more(world: World) -> None:
    cluster = world.arrange(nodes("n", 1), gang("g", 1))
    assert bindings(cluster.cycle()) == {"g-w-0": "n-0"}
    assert world.server.asked == []
    assert cluster.cache.tasks["uid-g-w-0"].shape.plain


def test_a_long_message_of_many_lines_becomes_a_short_one(world: World) -> None:
    cluster = world.arrange(nodes("n", 1), gang("g", 1), predicate=lambda _: {"status": "a\n b" + "x" * 5000})
    cluster.cycle()
    ((why, _),) = reason_of(cluster).nodes
    assert why.startswith("node(s) that the scheduler's extender refuses: a bx")
    assert len(why) < 300


def test_what_is_asked_and_answered_is_not_logged(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    replies: list[Callable[[Any], Any]] = [
        lambda _: 500,
        lambda _: b"secret-tenant",
        lambda _: {"status": "secret-tenant"},
    ]
    for reply in replies:
        world.arrange(nodes("n", 1), gang("secret-tenant", 1), predicate=reply, prioritize=reply).cycle()
    assert any("extender" in record.getMessage() for record in caplog.records)
    assert [each for each in caplog.records if "secret-tenant" in each.getMessage()] == []


def test_outcomes_do_not_depend_on_anything_but_the_answers(world: World) -> None:
    """P4, as far as it goes here: the same cluster and the same answers give the same decision."""
    outcomes: list[Outcome] = []
    for _ in range(2):
        cluster = world.arrange(
            nodes("n", 3),
            [gang(f"g{each}", 2) for each in range(3)],
            predicate=refuse_nodes("n-1"),
            prioritize=lambda question: {"nodeScore": {"n-0": 300 * (question["task"]["Name"] != "g1-w-0")}},
        )
        outcomes.append(cluster.cycle())
    assert outcomes[0] == outcomes[1]


class Mouthpiece:
    """An extender in the same process, for properties that need thousands of answers."""

    def __init__(self, answer: Callable[[str, Any], Any]) -> None:
        self.answer = answer

    def post(self, url: str, body: bytes, timeout: float) -> Answer:
        found = self.answer(url.rpartition("/")[2], json.loads(body))
        if found == 500:
            raise ExtenderError("HTTP status 500", 0.001)
        return Answer(json.dumps(found).encode(), 0.001)


NO = {
    "predicate": {"status": "no"},
    "prioritize": {"errorMessage": "no"},
    "jobEnqueueable": {"status": -1},
    "jobReady": {"status": False},
    "queueOverused": {"overused": True},
    "allocateFunc": {"errorMessage": "no"},
    "deallocateFunc": {"errorMessage": "no"},
    "preemptable": {"status": -1},
    "reclaimable": {"status": -1},
}
YES = {"prioritize": {"nodeScore": {}}, "jobReady": {"status": True}}
REFUSALS = st.sets(st.tuples(st.sampled_from(sorted(NO)), st.sampled_from(["w-0", "w-1", "w-3", ""]), st.booleans()))


@settings(max_examples=60, deadline=None)
@given(refusals=REFUSALS, ignorable=st.booleans())
def test_gangs_stay_whole_and_accounts_right_whatever_the_extender_says(
    refusals: set[tuple[str, str, bool]], ignorable: bool
) -> None:
    """P1 to P3. A refusal is of a verb and of the pods whose names end so; some are no answer at all."""
    told: Counter[str] = Counter()

    def answer(verb: str, question: Any) -> Any:
        name = question.get("task", {}).get("Name", "")
        told[name] += {"allocateFunc": 1, "deallocateFunc": -1}.get(verb, 0)
        for refused, pods_like, fails in sorted(refusals):
            if refused == verb and name.endswith(pods_like):
                return 500 if fails else NO[verb]
        return YES.get(verb, {})

    arguments = {"extender.urlPrefix": "http://extender", "extender.ignorable": ignorable}
    arguments |= {f"extender.{verb}Verb": verb for verb in VERBS}
    extender = plugin("extender", arguments)
    cluster = Cluster.of(
        nodes("n", 2, cpu=3),
        gang("a", 2),
        gang("b", 3, min_member=2),
        gang("c", 4),
        configuration=configuration(
            "enqueue, allocate, preempt, backfill", ["priority", "gang"], ["predicates", extender, "nodeorder"]
        ),
    ).connected(Mouthpiece(answer))
    for _ in range(4):
        outcome = cluster.cycle(seconds=70)
        audit(cluster.cache)
        for name, least in (("a", 2), ("b", 2), ("c", 4)):
            placed = [each for each in cluster.placed() if each.startswith(f"{name}-")]
            assert len(placed) == 0 or len(placed) >= least
        cluster.settle(outcome)
    if not any(fails for _, _, fails in refusals):  # who does not answer can't be told either
        assert {name for name, times in told.items() if times > 0} == set(cluster.placed())
