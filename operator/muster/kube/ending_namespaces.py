"""Namespaces that are being deleted: nothing can be made in them any more, which is said once of each, and quietly."""

from __future__ import annotations

import logging
from typing import Final

from muster.kube.errors import ApiError, NamespaceTerminating

_REMEMBERED: Final = 1000


class EndingNamespaces:
    """Of which ones it has been said, to the log of `logger`. Of very many the oldest are forgotten."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._said: dict[str, None] = {}

    def account_for(self, namespace: str, refusal: ApiError | None) -> bool:
        """Whether something was refused because its namespace goes; then there is nothing more to say of it."""
        if not isinstance(refusal, NamespaceTerminating):
            return False
        if namespace not in self._said:
            if len(self._said) >= _REMEMBERED:
                del self._said[next(iter(self._said))]
            self._said[namespace] = None
            self._logger.info("namespace %s is being deleted: nothing is made in it any more", namespace)
        return True

    def serves(self, namespace: str) -> None:
        """Something was made in it: it is another one of that name."""
        self._said.pop(namespace, None)
