"""What counts as a write, in the API server's own metrics."""

from __future__ import annotations

from bench.api_writes import writes
from bench.controllers.writes_by_kind import without_nodes

_METRICS = """\
# TYPE apiserver_request_total counter
apiserver_request_total{code="201",dry_run="",resource="pods",subresource="",verb="POST",version="v1"} 3
apiserver_request_total{code="409",dry_run="",resource="pods",subresource="",verb="POST",version="v1"} 1
apiserver_request_total{code="201",dry_run="",resource="pods",subresource="binding",verb="POST",version="v1"} 2
apiserver_request_total{code="200",dry_run="",resource="pods",subresource="",verb="GET",version="v1"} 100
apiserver_request_total{code="200",dry_run="",resource="pods",subresource="",verb="WATCH",version="v1"} 5
apiserver_request_total{code="200",dry_run="",resource="leases",subresource="",verb="PUT",version="v1"} 7
apiserver_request_total{code="200",dry_run="",resource="nodes",subresource="status",verb="PATCH",version="v1"} 9
apiserver_request_total{code="200",dry_run="",resource="rayjobs",subresource="status",verb="PUT",version="v1"} 1e+01
apiserver_request_terminations_total{code="200",resource="pods",subresource="",verb="POST"} 4
"""


def test_writes_are_counted_by_what_is_written_refused_ones_too_and_nothing_else_is() -> None:
    assert without_nodes(writes(_METRICS)) == {"POST pods": 4, "POST pods/binding": 2, "PUT rayjobs/status": 10}
