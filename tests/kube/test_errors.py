"""Answers of the API server become typed errors."""

from __future__ import annotations

import json
from typing import Any

import pytest

from muster.kube import errors
from muster.kube.errors import ApiError, TooManyRequests, error_from_answer, error_from_status


def status(code: int, reason: str, **more: Any) -> bytes:
    return json.dumps({"kind": "Status", "code": code, "reason": reason, "message": f"says {reason}", **more}).encode()


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (400, "BadRequest", errors.Invalid),
        (401, "Unauthorized", errors.Forbidden),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (409, "Conflict", errors.Conflict),
        (409, "AlreadyExists", errors.AlreadyExists),
        (410, "Expired", errors.Expired),
        (418, "Teapot", ApiError),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.TooManyRequests),
        (500, "InternalError", errors.ServerError),
        (504, "Timeout", errors.ServerError),
    ],
)
def test_the_status_decides_the_type(code: int, reason: str, kind: type[ApiError]) -> None:
    error = error_from_answer(code, status(code, reason, details={"name": "x"}))
    assert type(error) is kind
    assert (error.status, error.reason, error.message, error.details) == (code, reason, f"says {reason}", {"name": "x"})


def test_an_already_existing_object_is_a_conflict_too() -> None:
    assert issubclass(errors.AlreadyExists, errors.Conflict)


@pytest.mark.parametrize("payload", [b"", b"<html>bad gateway</html>", b"[1, 2]", b'{"code": "x"}', b"\xff\xfe"])
def test_an_answer_that_is_no_status_object_is_still_an_error(payload: bytes) -> None:
    error = error_from_answer(502, payload)
    assert isinstance(error, errors.ServerError)
    assert error.message


@pytest.mark.parametrize(
    ("header", "details", "seconds"),
    [
        ("3", {}, 3.0),
        (None, {"retryAfterSeconds": 2}, 2.0),
        ("soon", {}, None),
        (None, {}, None),
        ("-1", {}, 0.0),
        ("86400", {}, 60.0),
        ("inf", {}, 60.0),
        ("nan", {}, 0.0),
    ],
)
def test_a_429_says_when_to_come_back(header: str | None, details: dict[str, Any], seconds: float | None) -> None:
    error = error_from_answer(429, status(429, "TooManyRequests", details=details), header)
    assert isinstance(error, TooManyRequests)
    assert error.retry_after == seconds


def test_a_patch_under_another_uid_is_a_conflict() -> None:
    causes = [{"reason": "FieldValueInvalid", "field": "metadata.uid", "message": "field is immutable"}]
    assert type(error_from_answer(422, status(422, "Invalid", details={"causes": causes}))) is errors.Conflict


def test_a_refusal_because_the_namespace_goes_is_told_from_one_of_rights() -> None:
    causes = [{"reason": "NamespaceTerminating", "message": "namespace team is being terminated", "field": "ns"}]
    ending = error_from_answer(403, status(403, "Forbidden", details={"causes": causes}))
    assert type(ending) is errors.NamespaceTerminating
    other = error_from_answer(403, status(403, "Forbidden", details={"causes": [{"reason": "Other"}, 7]}))
    assert type(other) is errors.Forbidden


@pytest.mark.parametrize(
    "payload", [b"404 page not found", status(404, "NotFound"), status(404, "NotFound", details={})]
)
def test_an_answer_that_names_no_object_says_that_the_kind_is_not_served(payload: bytes) -> None:
    error = error_from_answer(404, payload)
    assert type(error) is errors.NotServed
    assert isinstance(error, errors.NotFound)
    assert error.message.endswith("(the API server does not serve this kind of object: is its CRD installed?)")


def test_an_error_event_of_a_watch_has_its_own_code() -> None:
    assert type(error_from_status(status(410, "Expired"))) is errors.Expired
    assert type(error_from_status(b'{"message": "?"}')) is errors.ServerError
