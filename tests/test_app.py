"""The composition root: what the process as a whole is set up for."""

from __future__ import annotations

import subprocess
import sys

_DEEP = """
import json, sys, msgspec
from muster.app import DEEP_ENOUGH
from muster.controllers.context import ObservedRayCluster
from muster.kube.client import Page

sys.setrecursionlimit(DEEP_ENOUGH)
template = '{"a":' * 9_980 + '1' + '}' * 9_980
page = '{"metadata": {}, "items": [{"metadata": {"name": "deep"}, "spec": {"template": ' + template + '}}]}'
json.loads(page)  # as kopf reads
raw = msgspec.json.decode(page, type=Page).items[0]
one, other = (msgspec.json.decode(raw, type=ObservedRayCluster) for _ in range(2))
assert one == other
"""


def test_the_deepest_object_that_an_api_server_takes_can_be_read() -> None:
    done = subprocess.run([sys.executable, "-c", _DEEP], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
