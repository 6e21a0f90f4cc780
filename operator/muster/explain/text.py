"""The answer in plain words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

_ADVICE: Final = {
    "wait": "wait: it goes on by itself",
    "change": "change the request, or make what it names: it will not go on by itself",
    "ask": "ask the administrator, or whoever else can change that",
}
_PODS: Final = "wait until its pods are made: if they are not, see the events of who makes them, or change minMember"
_REFUSED_PODS: Final = "its pods are refused: change them, or have mended what refuses them"
_QUOTA: Final = "wait for the namespace's other pods to end, ask for less, or have its ResourceQuota raised"
_NODES: Final = "ask for less, or have nodes added: it will not go on by itself, whatever else ends"
_ADVICE_ON: Final = {"NotEnoughPods": _PODS, "NotEnoughPodsOfRole": _PODS, "NamespaceQuota": _QUOTA}


def as_text(answer: Mapping[str, Any]) -> str:
    """Some lines, the most important first."""
    return "\n".join([*_head(answer), *_verdict(answer), *_queues(answer), *_details(answer.get("reason"), answer)])


def _head(answer: Mapping[str, Any]) -> Iterator[str]:
    phase = answer.get("phase") or (
        "not there while it is suspended" if _is_suspended(answer) else "which does not exist"
    )
    yield f"{answer['target']}: PodGroup {answer['podGroup']}, {phase}"
    if answer["source"] == "status":
        age = (
            f"{duration(answer['age'])} ago, at {answer['asOf']}" if "age" in answer else "at a time that is not known"
        )
        yield f"({answer['note']}; this is what the scheduler wrote {age})"
    ray = answer.get("ray")
    if ray is not None:
        said = [
            f"{name} {ray[name]}" for name in ("jobDeploymentStatus", "jobStatus", "state", "reason") if name in ray
        ]
        if ray["suspended"]:
            said.insert(0, "suspended: set spec.suspend to false and its pods are made")
        if said or "message" in ray:
            yield "Ray: " + "; ".join([*said, *([ray["message"]] if "message" in ray else [])])


def _is_suspended(answer: Mapping[str, Any]) -> bool:
    return bool(answer.get("ray", {}).get("suspended"))


def _advice(reason: Mapping[str, Any]) -> str:
    code, said = reason["code"], reason.get("advice", "")
    if "haveIfEmpty" in reason:
        return _NODES
    if "refused" in reason and said == "change":
        return _REFUSED_PODS
    return _ADVICE_ON.get(code) or _ADVICE.get(said, said)


def _verdict(answer: Mapping[str, Any]) -> Iterator[str]:
    reason, bound = answer.get("reason"), answer.get("wouldBind")
    if reason is not None:
        yield f"It waits: {reason['message']}."
    elif bound:
        yield f"It is placed now: {', '.join(f'{pod} on {node}' for pod, node in bound.items())}."
    elif "notReady" in answer:
        yield "It has its nodes. What is not ready yet:"
        yield from _not_ready(answer["notReady"])
    elif answer.get("phase"):
        yield "Nothing of it waits for the scheduler."
    if reason is not None and "notReady" in answer:
        yield from _not_ready(answer["notReady"])


def _not_ready(pods: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for each in pods:
        yield f"  {each['pod']} on {each['node']}: {each['waitsFor']}"
        last = each.get("warning")
        if last is not None and (last.get("message") or last["reason"]) not in each["waitsFor"]:
            ago = f" ({duration(last['age'])} ago)" if "age" in last else ""
            yield f"    {last['reason']}{ago}" + (f": {last['message']}" if "message" in last else "")


def _queues(answer: Mapping[str, Any]) -> Iterator[str]:
    if answer.get("reason") is None:
        return
    for number, queue in enumerate(answer.get("queues", ())):
        if not queue["name"]:
            continue  # without a PodGroup there is no queue
        state = queue.get("state", "Open")
        parts = [
            f"{'queue' if number == 0 else '  below'} {queue['name']}" + (f" ({state})" if state != "Open" else "")
        ]
        parts += [
            f"{word} {_amounts(queue[name])}"
            for name, word in (
                ("allocated", "uses"),
                ("deserved", "deserves"),
                ("capability", "may use at most"),
                ("guarantee", "is guaranteed"),
            )
            if name in queue and (name != "deserved" or number == 0 or _named(queue[name]))
        ]
        yield ", ".join(parts)


def _details(reason: Mapping[str, Any] | None, answer: Mapping[str, Any]) -> Iterator[str]:
    if reason is None:
        return
    yield from _numbers(reason)
    yield from _members(answer.get("members"))
    if "nodes" in reason:
        yield "nodes: " + ", ".join(f"{count} {why}" for why, count in reason["nodes"].items())
    if "nearMiss" in reason:
        yield f"closest: {reason['nearMiss']['node']} lacks {reason['nearMiss']['lacks']}"
    if "holders" in reason:
        yield from _holders(reason["holders"], reason.get("resource", ""))
    yield from _time(reason)
    if "wakes" in reason:
        yield "looked at again when " + ", or when ".join(reason["wakes"])
    if "suggestion" in reason:
        yield f"what would help: {reason['suggestion']['text']}"
    yield f"advice: {_advice(reason)} ({reason['code']})"


def _numbers(reason: Mapping[str, Any]) -> Iterator[str]:
    words = {"requested": "asked for", "used": "used", "free": "free", "limit": "of"}
    named = [f"{word} {reason[name]}" for name, word in words.items() if name in reason]
    if named and "resource" in reason:
        of = f" (node {reason['node']}, which has most of it free)" if "node" in reason else ""
        yield f"{reason['resource']}: {', '.join(named)}{of}"


def _members(members: Mapping[str, Any] | None) -> Iterator[str]:
    if members is None:
        return
    yield f"members: {members['fitting']} of {members['needed']} find a node"
    yield from (f"  {name}: {why}" for name, why in members["failing"].items())


def _holders(holders: Iterable[Mapping[str, Any]], resource: str) -> Iterator[str]:
    for who, held in (("in use by", False), ("held for", True)):
        some = [_holder(each, resource) for each in holders if each.get("held", False) is held]
        if some:
            yield f"{who}: " + "; ".join(some)


def _holder(holder: Mapping[str, Any], resource: str) -> str:
    who = f"{holder['podGroup']} (queue {holder['queue']})" if "podGroup" in holder else "pods of other schedulers"
    back = ", can be taken back" if holder.get("reclaimable") else ""
    return f"{who} {resource} {holder['amount']}{back}" if "amount" in holder else who


def _time(reason: Mapping[str, Any]) -> Iterator[str]:
    parts = []
    if "position" in reason:
        ahead = reason["ahead"]
        before = "none before it" if ahead == 0 else f"{ahead} before it"
        parts.append(f"number {reason['position']} of those that wait in its queue ({before})")
    if "waited" in reason:
        parts.append(f"has waited {duration(reason['waited'])}")
    if parts:
        yield "; ".join(parts)


def duration(seconds: int) -> str:
    """`90s`, `12m`, `3h5m`, `2d4h`."""
    if seconds < 120:
        return f"{seconds}s"
    minutes = seconds // 60
    if minutes < 60:
        return f"{minutes}m"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours}h{minutes}m" if minutes else f"{hours}h"
    days, hours = divmod(hours, 24)
    return f"{days}d{hours}h" if hours else f"{days}d"


def _amounts(amounts: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in _named(amounts).items()) or "nothing"


def _named(amounts: Mapping[str, str]) -> dict[str, str]:
    """Those that are not 0. Of queues that only group others, 0 is what nobody has worked out."""
    return {name: amount for name, amount in amounts.items() if amount != "0"}
