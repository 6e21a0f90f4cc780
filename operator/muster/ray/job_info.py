"""What Ray's Jobs API says and is told: the submission that goes in and the job's state that comes out.

Plain dataclasses on the standard library, because the submitter's pod, which has 64Mi to live in, uses them too.
Everything the user wrote travels as data inside JSON documents; no text here ever meets a shell.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from muster.api.job_status import JobStatus

__all__ = ["JobInfo", "JobStatus", "Submission", "UnexpectedDocument", "storable"]


class UnexpectedDocument(ValueError):  # noqa: N818 - says what is wrong
    """A document that is not what it should be; the text names the field."""


@dataclass(frozen=True, slots=True)
class JobInfo:
    """One job as the dashboard knows it. Times are milliseconds since 1970, None while not known."""

    submission_id: str
    status: JobStatus
    message: str = ""
    error_type: str | None = None
    start_time_ms: int | None = None
    end_time_ms: int | None = None
    driver_exit_code: int | None = None

    @classmethod
    def from_document(cls, document: object) -> Self:
        """Read the dashboard's answer. Raises UnexpectedDocument for anything that is no job with a known status."""
        if not isinstance(document, Mapping):
            raise UnexpectedDocument(f"a job must be an object, got {type(document).__name__}")
        try:
            status = JobStatus(str(document.get("status") or None))
        except ValueError:
            raise UnexpectedDocument(f"status: {document.get('status')!r} is no state of a Ray job") from None
        return cls(
            submission_id=str(document.get("submission_id") or ""),
            status=status,
            message=storable(str(document.get("message") or "")),
            error_type=document.get("error_type"),
            start_time_ms=_milliseconds(document.get("start_time")),
            end_time_ms=_milliseconds(document.get("end_time")),
            driver_exit_code=document.get("driver_exit_code"),
        )


_LATEST_MS = 253_402_300_799_000
"""The end of the year 9999: no time that is stored is later."""


def _milliseconds(value: object) -> int | None:
    """A dashboard runs what its users please: what is no time of this calendar counts as not known."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 < value <= _LATEST_MS else None


def storable(text: str) -> str:
    """The text without halves of surrogate pairs, which JSON can say, and which no UTF-8 that is sent on can."""
    return text.encode("utf-8", "replace").decode()


@dataclass(frozen=True, slots=True)
class Submission:
    """A job to submit. The id makes it idempotent: Ray holds at most one job of an id."""

    submission_id: str
    entrypoint: str
    runtime_env: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    entrypoint_num_cpus: float = 0
    entrypoint_num_gpus: float = 0
    entrypoint_resources: Mapping[str, float] = field(default_factory=dict)

    def to_document(self) -> dict[str, Any]:
        """The body that the Jobs API takes: fields without a value are left out, the entrypoint never is."""
        optional = {
            "runtime_env": dict(self.runtime_env),
            "metadata": dict(self.metadata),
            "entrypoint_num_cpus": self.entrypoint_num_cpus,
            "entrypoint_num_gpus": self.entrypoint_num_gpus,
            "entrypoint_resources": dict(self.entrypoint_resources),
        }
        required = {"entrypoint": self.entrypoint, "submission_id": self.submission_id}
        return required | {name: value for name, value in optional.items() if value}

    def to_json(self) -> str:
        """The submission as text for an environment variable of a container.

        Dollar signs are written as JSON escapes: the kubelet would otherwise expand `$(NAME)` in the user's text.
        """
        return json.dumps(self.to_document(), sort_keys=True).replace("$", "\\u0024")

    @classmethod
    def from_json(cls, text: str, submission_id: str = "") -> Self:
        """Read what `to_json` wrote; `submission_id`, if given, takes the place of the document's.

        Raises UnexpectedDocument, naming the field.
        """
        try:
            document = json.loads(text)
        except ValueError as error:
            raise UnexpectedDocument(f"not JSON: {error}") from None
        if not isinstance(document, dict):
            raise UnexpectedDocument(f"a submission must be an object, got {type(document).__name__}")
        for name, expected in _FIELD_TYPES.items():
            value = document.get(name)
            if value is not None and (not isinstance(value, expected) or isinstance(value, bool)):
                raise UnexpectedDocument(f"{name}: {value!r} has the wrong type")
        unknown = sorted(document.keys() - _FIELD_TYPES.keys())
        if unknown:
            raise UnexpectedDocument(f"unknown field {unknown[0]}")
        if submission_id:
            document["submission_id"] = submission_id
        if not document.get("submission_id"):
            raise UnexpectedDocument("submission_id: missing or empty")
        given = {name: value for name, value in document.items() if value is not None}
        return cls(**({"entrypoint": ""} | given))


_FIELD_TYPES: dict[str, type | tuple[type, ...]] = {
    "submission_id": str,
    "entrypoint": str,
    "runtime_env": dict,
    "metadata": dict,
    "entrypoint_num_cpus": (int, float),
    "entrypoint_num_gpus": (int, float),
    "entrypoint_resources": dict,
}
