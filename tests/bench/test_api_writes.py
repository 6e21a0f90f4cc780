"""Which requests of the API server's metrics are writes."""

from __future__ import annotations

import pytest

from bench.api_writes import write, writes

METRICS = """\
# TYPE apiserver_request_total counter
apiserver_request_total{code="201",component="apiserver",resource="pods",subresource="binding",verb="POST"} 3
apiserver_request_total{code="409",component="apiserver",resource="pods",subresource="",verb="PATCH"} 2
apiserver_request_total{code="200",component="apiserver",resource="pods",subresource="",verb="LIST"} 50
apiserver_request_total{code="200",component="apiserver",resource="leases",subresource="",verb="PUT"} 70
apiserver_request_total{code="200",component="apiserver",resource="queues",subresource="status",verb="APPLY"} 1e+02
apiserver_request_total_other{verb="POST"} 7
"""


def test_refused_writes_count_and_reads_and_leases_do_not() -> None:
    assert writes(METRICS) == {"POST pods/binding": 3, "PATCH pods": 2, "PATCH queues/status": 100}


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("POST", "/api/v1/namespaces", "POST namespaces"),
        ("DELETE", "/api/v1/namespaces/a", "DELETE namespaces"),
        ("POST", "/api/v1/nodes", "POST nodes"),
        ("POST", "/api/v1/namespaces/a/pods", "POST pods"),
        ("DELETE", "/api/v1/namespaces/a/pods/b", "DELETE pods"),
        ("POST", "/api/v1/namespaces/a/pods/b/binding", "POST pods/binding"),
        ("PATCH", "/apis/x.io/v1/queues/default/status", "PATCH queues/status"),
        ("POST", "/apis/x.io/v1/namespaces/a/podgroups", "POST podgroups"),
    ],
)
def test_a_request_is_counted_as_the_api_server_counts_it(method: str, path: str, expected: str) -> None:
    assert write(method, path) == expected
