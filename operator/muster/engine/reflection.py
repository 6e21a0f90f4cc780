"""How one kind of object gets into the model: translated, told when it differs, waking the loop when it matters."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from muster.engine.amounts import TranslationError
from muster.kube.informer import Change
from muster.kube.objects import ApiObject
from muster.kube.resource import Resource

logger = logging.getLogger(__name__)

T = TypeVar("T", bound=ApiObject)
S = TypeVar("S")


def key_of(found: ApiObject) -> str:
    """`namespace/name`, or the name of a cluster-scoped object."""
    return found.key


def nobody(_found: object) -> str:
    """No kin."""
    return ""


def always(_old: object, _new: object) -> bool:
    """Every difference matters."""
    return True


@dataclass(frozen=True, slots=True)
class Listener:
    """Who hears what comes of changes.

    `wake`: a decision could be another one now. `complain`: an object can't be translated. `doubt`: the model raised an
    exception, and can't be trusted from then on.
    """

    wake: Callable[[], None]
    complain: Callable[[Resource, ApiObject, TranslationError], None]
    doubt: Callable[[Exception], None]


@dataclass(slots=True)
class Reflection(Generic[T, S]):
    """One kind of object in the model.

    `translate` returns None for an object that the model has no need of, and may raise TranslationError. `identify`
    gives the key by which `remove` knows the object. `matters(old, new)` tells whether the difference could alter a
    decision. `again(new, old, known)`, where given, translates an object where `known` is what came of `old`, the same
    object before, or else one of its `kin`, which is a name for those that are most likely alike: the same as
    `translate`, in less time and with equal parts in common. Once `closed`, changes are passed over.
    """

    resource: Resource
    listener: Listener
    translate: Callable[[T], S | None]
    put: Callable[[S], None]
    remove: Callable[[str], None]
    identify: Callable[[T], str] = key_of
    matters: Callable[[S, S], bool] = always
    again: Callable[[T, T, S], S | None] | None = None
    kin: Callable[[T], str] = nobody
    closed: bool = False
    _told: dict[str, S] = field(default_factory=dict)
    _seen: dict[str, T] = field(default_factory=dict)
    """What `_told` came of, where objects are translated again."""
    _of_kin: dict[str, str] = field(default_factory=dict)
    """One key of each kin in `_seen`."""

    def on_change(self, change: Change[T]) -> None:
        """Take a change that the informer saw."""
        if self.closed:
            return
        key = self.identify(change.object)
        spec = None if change.new is None else self._translated(key, change.new)
        if spec is None or change.new is None:
            self.forget(key)
            return
        self.tell(key, spec)
        if self.again is not None:
            self._forget_seen(key)
            self._seen[key] = change.new
            if kin := self.kin(change.new):
                self._of_kin.setdefault(kin, key)

    def tell(self, key: str, spec: S) -> None:
        """Tell the model of an object, unless it knows."""
        before = self._told.get(key)
        if before == spec:
            return
        self._told[key] = spec
        try:
            self.put(spec)
        except Exception as error:
            self.listener.doubt(error)
        if before is None or self.matters(before, spec):
            self.listener.wake()

    def _translated(self, key: str, found: T) -> S | None:
        alike = key if key in self._seen else self._of_kin.get(self.kin(found), "")
        seen = self._seen.get(alike)
        try:
            if seen is not None and self.again is not None:
                return self.again(found, seen, self._told[alike])
            return self.translate(found)
        except TranslationError as error:
            self.listener.complain(self.resource, found, error)
        except Exception as error:  # one object that nobody foresaw must not stop the others
            logger.exception("%s can't be translated", found.key)
            self.listener.complain(self.resource, found, TranslationError("object", repr(error)))
        return None

    def forget(self, key: str) -> None:
        """Have the model forget an object, if it knows it."""
        self._forget_seen(key)
        if self._told.pop(key, None) is None:
            return
        try:
            self.remove(key)
        except Exception as error:
            self.listener.doubt(error)
        self.listener.wake()

    def _forget_seen(self, key: str) -> None:
        seen = self._seen.pop(key, None)
        if seen is not None and self._of_kin.get(kin := self.kin(seen)) == key:
            del self._of_kin[kin]
