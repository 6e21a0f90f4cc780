"""Names, to the letter."""

from __future__ import annotations

from random import Random

import pytest

from muster.ray import names

LONG = "abcdefghij" * 6  # 60 characters


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (names.head_pod_prefix("demo"), "demo-head-"),
        (names.head_pod_prefix("Demo"), "demo-head-"),
        (names.head_pod_prefix(LONG), f"{LONG[:50]}-head-"),
        (names.worker_pod_prefix("demo", "small"), "demo-small-worker-"),
        (names.worker_pod_prefix("demo", "GPU"), "demo-gpu-worker-"),
        (names.worker_pod_prefix("d" * 45, "small-group"), "d" * 45 + "-smal-worker-"),
        (names.head_service("demo"), "demo-head-svc"),
        (names.head_service("demo", {"metadata": {"name": "mine"}}), "mine"),
        (names.head_service("demo", {"metadata": {}}), "demo-head-svc"),
        (names.head_service("demo", {"metadata": None}), "demo-head-svc"),
        (names.headless_service("demo"), "demo-headless"),
        (names.serve_service("demo"), "demo-serve-svc"),
        (names.service_fqdn("demo-head-svc", "ns"), "demo-head-svc.ns.svc.cluster.local"),
        (names.service_fqdn("s", "ns", "example.org"), "s.ns.svc.example.org"),
        (names.generated("demo-job", "x2v4z"), "demo-job-x2v4z"),
        (names.submitter_job("demo-job"), "demo-job"),
        (names.ray_job_head_service("demo-job"), "demo-job-head-svc"),
        (names.pod_group("demo-job"), "ray-demo-job-pg"),
        (names.service_account("demo"), "demo"),
        (names.identifier("demo", "head"), "demo-head"),
        (names.checked_name(LONG), LONG[-50:]),
        (names.checked_name("1demo"), "rdemo"),
        (names.checked_name("-demo"), "rdemo"),
        (names.checked_name(""), ""),
        (names.label_value("-" + "x" * 62), "r" + "x" * 62),
        (names.label_value("y" + "x" * 63), "x" * 63),
        (names.label_value("1x"), "1x"),
        (names.label_value(""), ""),
    ],
)
def test_names_are_those_that_tools_expect(name: str, expected: str) -> None:
    assert name == expected


@pytest.mark.parametrize(
    ("name", "valid"),
    [("demo", True), ("a", True), ("demo-1", True), ("1demo", False), ("demo-", False), ("Demo", False),
     ("de.mo", False), ("", False), ("-demo", False), ("x" * 63, True), ("x" * 64, False), ("demo\n", False)],
)  # fmt: skip
def test_a_service_name_starts_with_a_letter_and_has_no_dots(name: str, valid: bool) -> None:
    assert names.is_dns_1035_label(name) is valid


def test_the_longest_allowed_names_give_pods_and_services_that_fit_a_label() -> None:
    ray_cluster = "c" * names.MAX_RAY_CLUSTER_NAME
    generated = names.generated("j" * names.MAX_RAY_JOB_NAME, "x" * names.SUFFIX_LENGTH)
    assert len(generated) == names.MAX_RAY_CLUSTER_NAME
    assert len(names.head_service(ray_cluster)) <= 63
    assert len(names.head_pod_prefix(ray_cluster)) + names.SUFFIX_LENGTH <= 63
    assert len(names.worker_pod_prefix(ray_cluster, "group")) + names.SUFFIX_LENGTH <= 63


def test_a_suffix_has_five_letters_of_kubernetes_alphabet_and_comes_from_the_given_randomness() -> None:
    suffix = names.random_suffix(Random(1))
    assert len(suffix) == 5
    assert set(suffix) <= set(names.SUFFIX_ALPHABET)
    assert suffix == names.random_suffix(Random(1)) != names.random_suffix(Random(2))
