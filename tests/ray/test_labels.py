"""Keys on the wire are a contract."""

from __future__ import annotations

import re

import pytest

from muster.ray import labels

KEYS = {name: value for name, value in vars(labels).items() if name.isupper() and "/" in str(value)}
QUALIFIED_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (labels.CLUSTER, "ray.io/cluster"),
        (labels.NODE_TYPE, "ray.io/node-type"),
        (labels.GROUP, "ray.io/group"),
        (labels.IDENTIFIER, "ray.io/identifier"),
        (labels.IS_RAY_NODE, "ray.io/is-ray-node"),
        (labels.ORIGINATED_FROM_NAME, "ray.io/originated-from-cr-name"),
        (labels.ORIGINATED_FROM_KIND, "ray.io/originated-from-crd"),
        (labels.PRIORITY_CLASS, "ray.io/priority-class-name"),
        (labels.RAYJOB_FINALIZER, "ray.io/rayjob-finalizer"),
        (labels.GROUP_NAME, "scheduling.k8s.io/group-name"),
        (labels.TASK_SPEC, "volcano.sh/task-spec"),
        (labels.QUEUE_NAME, "volcano.sh/queue-name"),
        (labels.HEAD_GROUP, "headgroup"),
        (labels.SUBMITTER_GROUP, "submittergroup"),
        (labels.OPERATOR, "kuberay-operator"),
        (labels.GANG_GATE, "muster.dev/gang"),
    ],
)
def test_the_keys_that_other_tools_select_on(key: str, text: str) -> None:
    assert key == text


@pytest.mark.parametrize("name", KEYS)
def test_every_key_is_one_that_the_api_server_takes(name: str) -> None:
    assert QUALIFIED_NAME.fullmatch(KEYS[name])


def test_no_two_names_stand_for_the_same_key() -> None:
    twice = {labels.MANAGED_BY_KUBERAY, labels.MANAGED_BY_MULTIKUEUE}  # values that look like keys
    keys = [value for value in KEYS.values() if value not in twice]
    assert len(keys) == len(set(keys))
