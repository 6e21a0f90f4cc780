"""Which cluster and which user kubeconfig files name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from muster.kube.kubeconfig import Access, ConnectionConfigError, read_kubeconfig


def write(path: Path, current: str | None = None, **names: str) -> str:
    """A file with a context, cluster and user of each name, at the server that is given."""
    document: dict[str, Any] = {
        "current-context": current,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}} for name in names],
        "clusters": [{"name": name, "cluster": {"server": server}} for name, server in names.items()],
        "users": [{"name": name, "user": {"token": path.name}} for name in names],
    }
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(document))
    return str(path)


def read(*places: str, context: str | None = None) -> Access:
    return read_kubeconfig(":".join(places), context)


def test_of_several_files_the_first_that_has_something_is_believed(tmp_path: Path) -> None:
    one = write(tmp_path / "a" / "one", a="https://first")
    two = write(tmp_path / "b" / "two", "b", a="https://second", b="https://b")
    three = write(tmp_path / "b" / "three", "a")
    found = read(one, str(tmp_path / "missing"), "", two, three)
    assert (found.cluster.server, found.user.token, found.user_folder.name) == ("https://b", "two", "b")
    other = read(one, two, context="a")
    assert (other.cluster.server, other.user.token, other.cluster_folder.name) == ("https://first", "one", "a")


def test_a_path_may_begin_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    write(tmp_path / "mine", "a", a="https://a")
    assert read("~/mine").cluster.server == "https://a"


def test_a_context_without_a_user_has_no_credentials(tmp_path: Path) -> None:
    path = tmp_path / "config"
    document = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://a"}}],
        "users": None,
    }
    path.write_text(yaml.safe_dump(document))
    assert read(str(path)).user.token is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("[]", "can't be used"),
        ("a: [", "not YAML"),
        ("current-context: 1", "current-context"),
        ("users: [{name: u, user: {token: 1}}]", r"users\[0\]"),
        ("contexts: []", "no current context"),
        ("current-context: c", "there is no context 'c'"),
        ("{current-context: c, contexts: [{name: c, context: {cluster: d}}]}", "there is no cluster 'd'"),
        (
            "{current-context: c, contexts: [{name: c, context: {cluster: d}}], clusters: [{name: d, cluster: {}}]}",
            "cluster 'd' names no server",
        ),
        (
            "{current-context: c, contexts: [{name: c, context: {cluster: d, user: u}}], "
            "clusters: [{name: d, cluster: {server: 'https://a'}}]}",
            "there is no user 'u'",
        ),
    ],
)
def test_what_can_not_be_used_is_told(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(ConnectionConfigError, match=words):
        read(str(path))


def test_secrets_are_not_told(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("users: [{name: u, user: {token: c2VjcmV0: x}}]")
    with pytest.raises(ConnectionConfigError) as refused:
        read(str(path))
    assert "c2VjcmV0" not in str(refused.value)
