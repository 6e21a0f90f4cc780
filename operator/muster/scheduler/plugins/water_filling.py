"""Sharing an amount out by weight: water filling.

What remains is split by weight among the claims not met yet, each takes no more than it asks for or may have, and what
it leaves is split again, until nothing moves. Reckoned in millionths of a unit and rounded once at the end: who
deserves two cores must not come out a thousandth short of his second pod because five cores were divided by three on
the way. The parts are integers, and add up to what the exact ones do.
"""

from __future__ import annotations

from dataclasses import dataclass

from muster.scheduler.resources import CPU, MEMORY, Resources

FINE = 10**6
"""Parts of a unit in which is reckoned."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One part: no more than `request` nor than `most`, no less than `guarantee`."""

    weight: int
    request: Resources
    guarantee: Resources
    most: Resources

    def in_millionths(self) -> Claim:
        """The same in a finer unit."""
        request, guarantee, most = (each.scaled(FINE, 1) for each in (self.request, self.guarantee, self.most))
        return Claim(self.weight, request, guarantee, most)

    def bounded(self, offer: Resources) -> Resources:
        """What is taken of an offer."""
        return offer.capped_by(self.most).minimum(self.request).maximum(self.guarantee)


@dataclass(frozen=True, slots=True)
class Part:
    """What a claim gets, in whole units and in millionths."""

    whole: Resources
    exact: Resources


def fill(whole: Resources, claims: list[Claim]) -> list[Part]:
    """What each claim gets."""
    exact = _fill(whole.scaled(FINE, 1), [claim.in_millionths() for claim in claims])
    return [Part(*each) for each in zip(_rounded(exact), exact, strict=True)]


def _fill(remaining: Resources, claims: list[Claim]) -> list[Resources]:
    got = [Resources() for _ in claims]
    unmet = list(range(len(claims)))
    while unmet:
        gained, lost, still = Resources(), Resources(), []
        for index, part in zip(unmet, _split(remaining, [claims[each].weight for each in unmet]), strict=True):
            before, claim = got[index], claims[index]
            after = got[index] = claim.bounded(before.plus(part))
            if not claim.request.less_equal(after) and after != before:
                still.append(index)
            gained.add(after.exceeded(before))
            lost.add(before.exceeded(after))
        rest = remaining.plus(lost).minus(gained).maximum(Resources())
        if rest.is_empty() or rest == remaining:
            break
        remaining, unmet = rest, still
    return got


def _split(amount: Resources, weights: list[int]) -> list[Resources]:
    """`amount` in parts by weight that add up to it exactly."""
    whole = sum(weights)
    parts, weight, given = [], 0, Resources()
    for each in weights:
        weight += each
        upto = amount.scaled(weight, whole)
        parts.append(upto.minus(given))
        given = upto
    return parts


def _rounded(exact: list[Resources]) -> list[Resources]:
    """Whole units; those that are left over by rounding down go where most was lost."""
    found = [Resources(scalars=dict.fromkeys(each.scalars, 0)) for each in exact]
    for name in (CPU, MEMORY, *sorted({name for each in exact for name in each.scalars})):
        for each, amount in zip(found, _round_down([each.get(name) for each in exact]), strict=True):
            if name == CPU:
                each.milli_cpu = amount
            elif name == MEMORY:
                each.memory = amount
            elif name in each.scalars:
                each.scalars[name] = amount
    return found


def _round_down(amounts: list[int]) -> list[int]:
    whole = [amount // FINE for amount in amounts]
    over = (sum(amounts) + FINE // 2) // FINE - sum(whole)
    for index in sorted(range(len(amounts)), key=lambda each: (amounts[each] % FINE, each), reverse=True)[:over]:
        whole[index] += 1
    return whole
