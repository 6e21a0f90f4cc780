"""The webhook's handler: what the judge says is said, and what the judge can't say holds up nobody."""

from __future__ import annotations

import logging
from typing import Any, cast

import pytest

from muster.admission.judgement import Judge, Judgement
from muster.admission.webhook import _no_refusal, _safely
from muster.kube.resource import RAYJOBS


class BrokenJudge:
    """A judge with a fault."""

    async def judge(self, *_: Any) -> Judgement:
        raise RecursionError("a fault of ours")


async def test_a_fault_of_ours_lets_the_object_in_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    new = {"metadata": {"namespace": "ns", "name": "odd"}}
    judgement = await _safely(cast("Judge", BrokenJudge()), RAYJOBS, new, None)
    assert judgement.refusals == ()
    assert judgement.warnings
    assert "ns/odd could not be judged" in caplog.text


def test_a_refusal_is_no_error_in_the_log_and_anything_else_is() -> None:
    def record(message: str) -> logging.LogRecord:
        return logging.LogRecord("kopf.objects", logging.ERROR, "", 0, message, None, None)

    assert not _no_refusal(record("Handler 'rayjobs' failed permanently: spec.x: is wrong"))
    assert _no_refusal(record("Handler 'rayjobs' failed with an exception and will stop now: x"))
