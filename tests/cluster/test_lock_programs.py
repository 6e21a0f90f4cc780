"""What the lock of the programs' Go module reads out of Kubernetes' own."""

from __future__ import annotations

from tests.cluster.lock_programs import held_back, required_versions, staged_libraries

_KUBERNETES = """module k8s.io/kubernetes

require (
\tgo.etcd.io/etcd/api/v3 v3.6.4
\tgoogle.golang.org/grpc v1.72.1
\tgithub.com/go-logr/logr v1.4.2 // indirect
\tk8s.io/api v0.0.0
)

replace (
\tk8s.io/api => ./staging/src/k8s.io/api
\tk8s.io/client-go => ./staging/src/k8s.io/client-go
\texample.com/other => example.com/other v1.2.3
)
"""


def test_libraries_inside_kubernetes_own_repository_are_found_by_their_folders() -> None:
    assert staged_libraries(_KUBERNETES) == ["k8s.io/api", "k8s.io/client-go"]


def test_required_versions_are_those_of_the_require_lines_alone() -> None:
    excluded = "exclude x.io/y v1.0.0\n\nexclude (\n\ta.io/b v1.1.0\n\ta.io/b v1.2.0\n)\n"
    assert required_versions("require a.io/b v1.0.0\n" + _KUBERNETES + excluded) == {
        "a.io/b": "v1.0.0",
        "go.etcd.io/etcd/api/v3": "v3.6.4",
        "google.golang.org/grpc": "v1.72.1",
        "github.com/go-logr/logr": "v1.4.2",
        "k8s.io/api": "v0.0.0",
    }


def test_libraries_that_others_raised_are_held_back_but_for_staged_ones_and_etcds() -> None:
    selected = {
        "go.etcd.io/etcd/api/v3": "v3.6.5",
        "google.golang.org/grpc": "v1.75.0",
        "github.com/go-logr/logr": "v1.4.2",
        "k8s.io/api": "v0.34.0",
    }
    kubernetes = required_versions(_KUBERNETES)
    assert held_back(kubernetes, selected, {"k8s.io/api": "v0.34.0"}) == {"google.golang.org/grpc": "v1.72.1"}
