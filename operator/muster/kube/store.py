"""What an informer knows: objects by key, with indexes, and the subscribers that hear of every change.

The store decides by resourceVersion which of two states of an object is the newer one. These are integers that grow
with every write to the API server, so states from the watch, from a list and from our own writes can be compared.
Changes reach the subscribers one after another in the order in which they happened, also when a subscriber's handler
causes the next one.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final, Generic, TypeVar

from muster.kube.objects import ApiObject

T = TypeVar("T", bound=ApiObject)

_log = logging.getLogger(__name__)
_NAMESPACE: Final = "\0namespace"
_Listing = list  # inside the class `list` is the method


class ChangeKind(Enum):
    """What happened to an object."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """A change of one object: `old` is None when it was added, `new` when it was deleted.

    An object that was deleted and made anew under its name (another UID) comes as two changes.
    """

    kind: ChangeKind
    old: T | None
    new: T | None

    @property
    def object(self) -> T:
        """The newest state there is."""
        found = self.new if self.new is not None else self.old
        assert found is not None, "a change has an old or a new object"  # noqa: S101
        return found


Handler = Callable[[Change[T]], None]
IndexKey = Callable[[T], Iterable[str]]


def version_of(obj: ApiObject) -> int:
    """The resourceVersion as a number; 0 where there is none."""
    return number(obj.metadata.resource_version)


def number(resource_version: str) -> int:
    """A resourceVersion as a number; 0 for one that is none (only test doubles have those)."""
    return int(resource_version) if resource_version.isdecimal() else 0


def key_of(namespace: str | None, name: str) -> str:
    """The key of an object: `namespace/name`, or `name` alone."""
    return f"{namespace}/{name}" if namespace else name


class Store(Generic[T]):
    """Objects by key, indexed, with subscribers. `what` names the kind in logs."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._objects: dict[str, T] = {}
        self._index_keys: dict[str, IndexKey[T]] = {_NAMESPACE: lambda obj: [obj.metadata.namespace or ""]}
        self._indexes: dict[str, dict[str, dict[str, T]]] = {_NAMESPACE: {}}
        self._handlers: tuple[Handler[T], ...] = ()
        self._undelivered: deque[tuple[Change[T], tuple[Handler[T], ...]]] = deque()
        self._delivering = False

    def get(self, key: str) -> T | None:
        """The object under this key."""
        return self._objects.get(key)

    def __iter__(self) -> Iterator[str]:
        """The keys of this moment; the store may change while they are gone through."""
        return iter(_Listing(self._objects))

    def list(self, namespace: str | None = None) -> _Listing[T]:
        """All objects, or those of one namespace."""
        return _Listing(self._objects.values()) if namespace is None else self.by_index(_NAMESPACE, namespace)

    def by_index(self, index: str, value: str) -> _Listing[T]:
        """The objects whose index key function gave this value. Raises KeyError for an unknown index."""
        return _Listing(self._indexes[index].get(value, {}).values())

    def add_index(self, name: str, key: IndexKey[T]) -> None:
        """Index all objects by the values that `key` gives for each."""
        self._index_keys[name] = key
        self._indexes[name] = {}
        for obj_key, obj in self._objects.items():
            self._insert(name, obj_key, obj)

    def subscribe(self, handler: Handler[T]) -> None:
        """Call `handler` with every change from now on, and first with ADDED for every object that is there."""
        self._handlers = (*self._handlers, handler)
        for obj in _Listing(self._objects.values()):
            self._undelivered.append((Change(ChangeKind.ADDED, None, obj), (handler,)))
        self._deliver()

    def put(self, obj: T) -> bool:
        """Take this state of an object, unless the stored one is as new. Says whether it was taken."""
        key = obj.key
        old = self._objects.get(key)
        if old is not None and version_of(old) >= version_of(obj):
            return False
        if old is not None and old.metadata.uid != obj.metadata.uid:
            self.remove(key)
            old = None
        self._unindex(key, old)
        self._objects[key] = obj
        for index in self._indexes:
            self._insert(index, key, obj)
        self._announce(Change(ChangeKind.ADDED if old is None else ChangeKind.MODIFIED, old, obj))
        return True

    def remove(self, key: str) -> None:
        """Drop an object, if it is there."""
        old = self._objects.pop(key, None)
        if old is not None:
            self._unindex(key, old)
            self._announce(Change(ChangeKind.DELETED, old, None))

    def _values(self, index: str, obj: T) -> _Listing[str]:
        try:
            return _Listing(self._index_keys[index](obj))
        except Exception:
            _log.exception("%s %s: index %r can't be computed", self._what, obj.key, index)
            return []

    def _insert(self, index: str, key: str, obj: T) -> None:
        for value in self._values(index, obj):
            self._indexes[index].setdefault(value, {})[key] = obj

    def _unindex(self, key: str, old: T | None) -> None:
        if old is None:
            return
        for index, entries in self._indexes.items():
            for value in self._values(index, old):
                bucket = entries.get(value, {})
                bucket.pop(key, None)
                if not bucket:
                    entries.pop(value, None)

    def _announce(self, change: Change[T]) -> None:
        self._undelivered.append((change, self._handlers))
        self._deliver()

    def _deliver(self) -> None:
        if self._delivering:
            return
        self._delivering = True
        try:
            while self._undelivered:
                change, handlers = self._undelivered.popleft()
                for handler in handlers:
                    self._tell(handler, change)
        finally:
            self._delivering = False

    def _tell(self, handler: Handler[T], change: Change[T]) -> None:
        try:
            handler(change)
        except Exception:
            _log.exception("%s %s: a handler failed on %s", self._what, change.object.key, change.kind.value)
