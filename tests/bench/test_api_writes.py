"""Which requests of the API server's metrics are writes."""

from __future__ import annotations

from bench.api_writes import writes

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
    assert writes(METRICS) == 105
