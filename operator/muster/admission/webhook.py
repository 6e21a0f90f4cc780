"""The webhook: kopf serves it, `Judge` decides.

kopf runs on a thread of its own (see `kopf_thread`), so that a long cycle of the scheduler delays no `kubectl apply`.
It manages no configuration: the shipped one says that the API server goes on without us when we do not answer.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import kopf
from aiohttp import web

from muster.admission.judgement import Judge, Judgement
from muster.controllers.clock import SystemClock
from muster.controllers.kopf_thread import KopfThread, log_in_with, quiet_settings
from muster.controllers.primary import in_words
from muster.controllers.template_judge import TemplateJudge
from muster.kube.client import ApiClient
from muster.kube.config import Connection
from muster.kube.resource import RAYCLUSTERS, RAYJOBS, Resource
from muster.ray.pod_options import PodOptions

logger = logging.getLogger(__name__)

_DEFAULTS: Final = PodOptions()

LARGEST_REVIEW: Final = 8 << 20
"""Bytes. A review has both versions of an object, each of which may have 1.5 MiB in etcd, and more as JSON."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the webhook listens (all addresses) and the files of its certificate, which are read again on change."""

    port: int
    certificate: Path
    key: Path


def build_registry(connection: Connection, judge: Judge) -> kopf.OperatorRegistry:
    """An operator that judges RayClusters and RayJobs, at /rayclusters and /rayjobs."""
    registry = kopf.OperatorRegistry()
    log_in_with(registry, connection)
    for resource in (RAYCLUSTERS, RAYJOBS):
        _judge(registry, resource, judge)
    return registry


def _judge(registry: kopf.OperatorRegistry, resource: Resource, judge: Judge) -> None:
    @kopf.on.validate(resource.group, resource.version, resource.plural, registry=registry, id=resource.plural)
    async def judged(*, warnings: list[str], **review: Any) -> None:
        if review["new"] is None:
            return
        new: dict[str, Any] = dict(review["new"])
        old = review["old"]
        judgement = await _safely(judge, resource, new, dict(old) if old is not None else None)
        warnings.extend(judgement.warnings)
        if judgement.refusals:
            words = in_words(judgement.refusals)
            logger.info("refused %s %s: %s", resource.kind, _key(new), words)
            raise kopf.AdmissionError(words, code=422)


async def _safely(judge: Judge, resource: Resource, new: dict[str, Any], old: dict[str, Any] | None) -> Judgement:
    """What the judge says. A fault of ours keeps nobody from working: the controllers look at the object again."""
    try:
        return await judge.judge(resource, new, old)
    except Exception:
        logger.exception("%s %s could not be judged; it is let in", resource.kind, _key(new))
        return Judgement(warnings=("it could not be judged at admission because of a fault in Muster",))


def _key(raw: Mapping[str, Any]) -> str:
    meta = raw["metadata"]
    return f"{meta.get('namespace')}/{meta.get('name')}"


class ForgetfulServer(kopf.WebhookServer):
    """kopf's server, without its memory, and for objects of any size that can be stored.

    kopf keeps a note of each object that is updated until it sees the object go, and here it watches none: the notes
    would pile up for ever. It keeps none of objects that are created; and what an update is, the old object says.
    """

    async def __call__(self, fn: kopf.WebhookFn) -> AsyncIterator[kopf.WebhookClientConfig]:
        """See kopf.WebhookServer."""

        async def forgetting(request: Any, **hints: Any) -> Any:
            request["request"]["operation"] = "CREATE"
            return await fn(request, **hints)

        async for client_config in super().__call__(cast("kopf.WebhookFn", forgetting)):
            yield client_config

    @staticmethod
    async def _serve(fn: kopf.WebhookFn, request: web.Request) -> web.Response:
        # Of itself the server takes no more than 1 MiB.
        request = request.clone(client_max_size=LARGEST_REVIEW)
        try:
            await request.read()  # it is remembered
        except OSError as lost:
            logger.info("%s gave up on a review while it was read: %s", request.remote, lost)
            return web.Response(status=400)  # nobody is there to read this
        return await kopf.WebhookServer._serve(fn, request)


async def serve(connection: Connection, endpoint: Endpoint, pods: PodOptions = _DEFAULTS) -> None:
    """Serve until cancelled. `pods` is what the operator's own configuration says of the pods that are made."""

    async def work(own: Connection, stop: threading.Event) -> None:
        async with ApiClient(own, user_agent="muster-admission") as client:
            judge = Judge(TemplateJudge(client, SystemClock()), pods)
            settings = quiet_settings()
            settings.admission.server = ForgetfulServer(
                addr="0.0.0.0",  # noqa: S104 - the API server has to reach it
                port=endpoint.port,
                certfile=endpoint.certificate,
                pkeyfile=endpoint.key,
            )
            identity: Any = "muster-admission"
            await kopf.operator(
                identity=identity,
                registry=build_registry(own, judge),
                settings=settings,
                clusterwide=True,
                stop_flag=stop,
            )

    # A refusal is the user's news, not the operator's error.
    logging.getLogger("kopf.objects").addFilter(_no_refusal)
    await KopfThread("the webhook", connection, work).run()


def _no_refusal(record: logging.LogRecord) -> bool:
    return " failed permanently: " not in record.getMessage()
