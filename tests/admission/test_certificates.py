"""Key pairs: for whom, how long, and which counts as usable."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from muster.admission.certificates import LIFETIME, RENEWAL, new_pair

NOW = datetime(2030, 1, 1, tzinfo=UTC)
HOSTS = ("muster-admission.muster-system.svc", "127.0.0.1")


def test_a_new_pair_serves_its_hosts_until_it_should_be_renewed() -> None:
    pair = new_pair(HOSTS, NOW)
    hour = timedelta(hours=1)
    assert pair.serves(HOSTS, NOW)
    assert pair.serves(HOSTS, NOW + LIFETIME - RENEWAL - 2 * hour)
    assert not pair.serves(HOSTS, NOW + LIFETIME - RENEWAL)
    assert not pair.serves(HOSTS, NOW - 2 * hour)
    assert not pair.serves(HOSTS[:1], NOW)
    assert not pair.serves((*HOSTS, "another.svc"), NOW)


@pytest.mark.parametrize("part", ["certificate", "key", "bundle"])
def test_parts_that_do_not_belong_together_serve_nobody(part: str) -> None:
    pair, other = new_pair(HOSTS, NOW), new_pair(HOSTS, NOW)
    assert not replace(pair, **{part: getattr(other, part)}).serves(HOSTS, NOW)
    assert not replace(pair, **{part: b"nonsense"}).serves(HOSTS, NOW)
    assert not replace(pair, **{part: b""}).serves(HOSTS, NOW)


def test_the_bundle_holds_the_authority_before_and_none_older() -> None:
    first = new_pair(HOSTS, NOW)
    second = new_pair(HOSTS, NOW + timedelta(days=1), before=first.bundle)
    third = new_pair(HOSTS, NOW + timedelta(days=2), before=second.bundle)
    authorities = x509.load_pem_x509_certificates(third.bundle)
    assert len(authorities) == 2
    assert first.bundle not in third.bundle
    assert authorities[1] == x509.load_pem_x509_certificates(second.bundle)[0]


def test_a_bundle_that_cannot_be_read_counts_as_empty() -> None:
    assert new_pair(HOSTS, NOW, before=b"nonsense").bundle.count(b"BEGIN") == 1


def test_a_long_host_name_is_served() -> None:
    long = "a" * 60 + ".example.svc"
    assert new_pair((long,), NOW).serves((long,), NOW)
