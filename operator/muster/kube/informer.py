"""A local copy of one kind of object that follows the API server and says what changed.

It lists in pages, then watches from the list's version, with bookmarks. A watch that ends or breaks is taken up where
it stopped; a version that the server has forgotten (410) leads to a new list, and what a list lacks was deleted. A
watch that falls silent for `read_timeout` seconds is dead and replaced. Failures back off with jitter.

Promises: `get` never goes back in time for an object; after `record` it is at least as new as that write; a handler
that raises, or an object of the wrong shape, stops nothing else. It does not promise to show every state in between.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Final, Generic, TypeVar

import msgspec

from muster.kube.client import LIST_CHUNK, ApiClient, WatchEvent
from muster.kube.errors import ApiError, Expired, TooManyRequests, Undecodable, Unreachable
from muster.kube.malformed import MalformedObject, decode_envelope, decode_object
from muster.kube.objects import ApiObject
from muster.kube.resource import Resource
from muster.kube.store import Change, ChangeKind, Handler, IndexKey, Store, key_of, number, version_of
from muster.kube.transport import Sleep

__all__ = ["Change", "ChangeKind", "Informer", "MalformedObject"]

T = TypeVar("T", bound=ApiObject)

_log = logging.getLogger(__name__)
_Listing = list  # inside the class `list` is the method

READ_TIMEOUT: Final = 100.0
"""Seconds of silence that mean a dead watch: the server sends a bookmark at least every 75."""
_WATCH_SECONDS: Final = 300
_SHORTEST_WATCH: Final = 1.0
_FIRST_DELAY: Final = 0.2
_LONGEST_DELAY: Final = 10.0
"""Seconds; short, because an informer that lags holds up every decision."""
_OLD_LISTS_BELIEVED_AFTER: Final = 5


def as_it_is(obj: T, _known: T | None) -> T:
    """Keep an object whole."""
    return obj


class Informer(Generic[T]):
    """Keeps all objects of `resource` (in one namespace, or matching selectors, if given) as `decode` structs.

    A label selector names labels and their values (`key=value`, with commas). `chunk` is the page size of lists,
    `read_timeout` in seconds. `compact` is given each object, and what is known under its key, and returns what to keep
    of it. `clock` (monotonic seconds), `sleep` and `jitter` (a number in [0, 1)) are injected.
    """

    def __init__(
        self,
        client: ApiClient,
        resource: Resource,
        decode: type[T],
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        compact: Callable[[T, T | None], T] = as_it_is,
        chunk: int = LIST_CHUNK,
        read_timeout: float = READ_TIMEOUT,
        clock: Callable[[], float] = time.monotonic,
        sleep: Sleep = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.resource = resource
        self._client = client
        self._decoder = msgspec.json.Decoder(decode)
        self._namespace = namespace
        self._label_selector = label_selector
        self._labels = _labels(label_selector)
        self._field_selector = field_selector
        self._compact = compact
        self._chunk = chunk
        self._read_timeout = read_timeout
        self._clock = clock
        self._sleep = sleep
        self._jitter = jitter
        self._store: Store[T] = Store(resource.kind)
        self._synced = asyncio.Event()
        self._passed = 0
        """The version up to which list and watch have told everything."""
        self._must_list = True
        self._watch_lived = False
        """Whether the latest watch told anything or lasted: then there is no reason to hold back the next one."""
        self._old_lists = 0
        self._malformed: dict[str, MalformedObject] = {}
        """The objects that were reported as malformed and still are."""
        self._malformed_callbacks: list[Callable[[MalformedObject], None]] = []
        self._malformed_deleted_callbacks: list[Callable[[MalformedObject], None]] = []

    # --- what it knows ----------------------------------------------------------------------------------------------

    @property
    def has_synced(self) -> bool:
        """Whether a first list is complete and all subscribers have heard of it."""
        return self._synced.is_set()

    async def wait_synced(self, deadline_seconds: float) -> None:
        """Wait for the first list. Raises TimeoutError."""
        try:
            # Not wait_for: before Python 3.12 it loses a cancellation that meets the end of the wait.
            async with asyncio.timeout(deadline_seconds):
                await self._synced.wait()
        except TimeoutError:
            raise TimeoutError(f"no list of {self.resource.plural} within {deadline_seconds} s") from None

    def get(self, namespace: str | None, name: str) -> T | None:
        """One object, as it is known now."""
        return self._store.get(key_of(namespace, name))

    def list(self, namespace: str | None = None) -> _Listing[T]:
        """All objects, or those of one namespace."""
        return self._store.list(namespace)

    def by_index(self, index: str, value: str) -> _Listing[T]:
        """The objects for which the index's key function gave this value. Raises KeyError for an unknown index."""
        return self._store.by_index(index, value)

    def unreadable(self, namespace: str | None, name: str) -> MalformedObject | None:
        """The object of this name, where it can't be read as it is now."""
        key = key_of(namespace, name)
        return None if self._store.get(key) is not None else self._malformed.get(key)

    def all_unreadable(self) -> _Listing[MalformedObject]:
        """All objects that can't be read as they are now."""
        return [one for key, one in self._malformed.items() if self._store.get(key) is None]

    # --- who listens ------------------------------------------------------------------------------------------------

    def add_index(self, name: str, key: IndexKey[T]) -> None:
        """Index the objects by the values that `key` gives for each."""
        self._store.add_index(name, key)

    def subscribe(self, handler: Handler[T]) -> None:
        """Call `handler` with every change, and at once with ADDED for every object that is known already."""
        self._store.subscribe(handler)

    def on_malformed(self, callback: Callable[[MalformedObject], None]) -> None:
        """Call `callback` with every object of the wrong shape, once for each version of it."""
        self._malformed_callbacks.append(callback)

    def on_malformed_deleted(self, callback: Callable[[MalformedObject], None]) -> None:
        """Call `callback` when an object that was last reported as malformed has been deleted."""
        self._malformed_deleted_callbacks.append(callback)

    def record(self, obj: T) -> None:
        """Take the object that a write of ours returned, so that the next read sees that write.

        Ignored when it is older than what is stored, or than what the watch has passed already: then the watch's
        word, deletion included, is newer. Ignored, too, when it is not of this informer's namespace and labels: the
        watch would never tell what becomes of it. `obj` must be one that the field selector matches.
        """
        if version_of(obj) > self._passed and self._is_watched(obj):
            self._put(obj.key, obj)

    def _is_watched(self, obj: T) -> bool:
        meta = obj.metadata
        return self._namespace in (None, meta.namespace) and self._labels.items() <= meta.labels.items()

    # --- following the server ---------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Follow the API server until cancelled; no failure of the server ends it."""
        failures = 0
        while True:
            self._watch_lived = False
            error = await self._follow()
            failures = 0 if self._watch_lived else failures + 1
            if self._watch_lived and error is None:
                continue
            if isinstance(error, Expired) and failures <= 1:
                continue
            delay = self._delay(failures, error)
            _log.warning("%s: %s; again in %.1f s", self.resource.plural, error or "the watch ended at once", delay)
            await self._sleep(delay)

    async def _follow(self) -> ApiError | None:
        """List if need be, then watch to the end; returns what went wrong."""
        try:
            if self._must_list:
                await self._list()
            await self._watch()
        except ApiError as error:
            # A lost connection is taken up where it was; anything else puts the version itself in doubt.
            if not isinstance(error, Unreachable | TooManyRequests):
                self._must_list = True
            return error
        return None

    def _delay(self, failures: int, error: ApiError | None) -> float:
        doubled = _FIRST_DELAY * 2.0 ** min(max(failures - 1, 0), 16)
        delay = min(_LONGEST_DELAY, doubled) * (0.5 + self._jitter() / 2)
        if isinstance(error, TooManyRequests) and error.retry_after is not None:
            delay = max(delay, error.retry_after)
        return delay

    async def _list(self) -> None:
        try:
            await self._list_in(self._chunk)
        except Expired:  # the pages took longer than the server keeps a moment: ask for all at once
            await self._list_in(0)

    async def _list_in(self, chunk: int) -> None:
        seen: set[str] = set()
        version: int | None = None
        pages = self._client.pages(
            self.resource,
            self._namespace,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
            chunk=chunk,
        )
        async with aclosing(pages):
            async for page in pages:
                if version is None:
                    version = number(page.metadata.resource_version)
                    self._check_age(version)
                for raw in page.items or []:
                    seen.add(self._take(raw)[0])
        self._passed = version or 0
        self._remove_missing(seen, self._passed)
        self._must_list = False
        self._synced.set()

    def _check_age(self, version: int) -> None:
        """Refuse a list that is older than what we know; believe it when it stays so (a restored backup)."""
        if version >= self._passed:
            self._old_lists = 0
            return
        self._old_lists += 1
        if self._old_lists < _OLD_LISTS_BELIEVED_AFTER:
            raise Undecodable(f"the list is of version {version}, but {self._passed} was seen before")
        _log.warning("%s: version %d came back after %d: start afresh", self.resource.plural, version, self._passed)
        self._old_lists = 0
        self._passed = 0
        for key in self._store:
            self._store.remove(key)

    def _remove_missing(self, seen: set[str], version: int) -> None:
        """What a list of this version lacks was deleted, unless we recorded it after that version."""
        for key in self._store:
            stored = self._store.get(key)
            if key not in seen and stored is not None and version_of(stored) <= version:
                self._store.remove(key)
        for key in self._malformed.keys() - seen:
            self._drop_malformed(key)

    async def _watch(self) -> None:
        batches = self._client.watch(
            self.resource,
            self._namespace,
            resource_version=str(self._passed),
            label_selector=self._label_selector,
            field_selector=self._field_selector,
            timeout_seconds=int(_WATCH_SECONDS * (1 + self._jitter())),
            read_timeout=self._read_timeout,
        )
        started = self._clock()
        try:
            async with aclosing(batches):
                async for batch in batches:
                    self._watch_lived = True
                    self._apply(batch)
        finally:
            self._watch_lived = self._watch_lived or self._clock() - started >= _SHORTEST_WATCH

    def _apply(self, batch: Sequence[WatchEvent]) -> None:
        for event in batch:
            if event.type in ("ADDED", "MODIFIED"):
                version = self._take(event.object)[1]
            else:
                key, version = _identity(event.object)
                if event.type == "DELETED":
                    self._delete(key, version)
            self._passed = max(self._passed, version)

    def _take(self, raw: msgspec.Raw) -> tuple[str, int]:
        """Take one object as list or watch told it; returns its key and version."""
        found = decode_object(raw, self._decoder, self.resource)
        if isinstance(found, MalformedObject):
            return self._set_apart(found)
        key = found.key
        self._malformed.pop(key, None)
        self._put(key, found)
        return key, version_of(found)

    def _put(self, key: str, obj: T) -> None:
        self._store.put(self._compact(obj, self._store.get(key)))

    def _set_apart(self, malformed: MalformedObject) -> tuple[str, int]:
        key, version = key_of(malformed.namespace, malformed.name), number(malformed.resource_version)
        stored = self._store.get(key)
        if stored is not None and version_of(stored) >= version:
            return key, version
        self._store.remove(key)
        before = self._malformed.get(key)
        if before is None or before.resource_version != malformed.resource_version:
            self._malformed[key] = malformed
            self._report(malformed)
        return key, version

    def _drop_malformed(self, key: str) -> None:
        malformed = self._malformed.pop(key, None)
        if malformed is not None:
            self._tell(self._malformed_deleted_callbacks, malformed)

    def _report(self, malformed: MalformedObject) -> None:
        _log.warning(
            "%s %s is malformed: %s",
            self.resource.kind,
            key_of(malformed.namespace, malformed.name),
            malformed.path_message,
        )
        self._tell(self._malformed_callbacks, malformed)

    def _tell(self, callbacks: Sequence[Callable[[MalformedObject], None]], malformed: MalformedObject) -> None:
        for callback in callbacks:
            try:
                callback(malformed)
            except Exception:
                _log.exception("%s %s: a handler of malformed objects failed", self.resource.kind, malformed.name)

    def _delete(self, key: str, version: int) -> None:
        """Drop what was deleted at this version, unless what we have was made (and recorded) after that."""
        self._drop_malformed(key)
        stored = self._store.get(key)
        if stored is not None and version_of(stored) <= version:
            self._store.remove(key)


def _labels(selector: str | None) -> dict[str, str]:
    """The labels that a selector asks for. Raises ValueError for a selector that asks for more than equality."""
    wanted: dict[str, str] = {}
    for term in selector.split(",") if selector else ():
        key, equals, value = term.partition("=")
        if not equals or key.endswith("!"):
            raise ValueError(f"{selector!r} is not a list of key=value")
        wanted[key.strip()] = value.removeprefix("=").strip()
    return wanted


def _identity(raw: msgspec.Raw) -> tuple[str, int]:
    meta = decode_envelope(raw).metadata
    return key_of(meta.namespace, meta.name), number(meta.resource_version)
