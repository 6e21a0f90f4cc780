from __future__ import annotations

import base64

import pytest

from muster.kube.object_base import ObjectMeta
from muster.kube.secret_objects import Secret


def secret(value: str) -> Secret:
    return Secret(metadata=ObjectMeta(name="demo", namespace="team"), data={"auth_token": value})


def test_the_text_form_of_a_secret_holds_nothing_of_it() -> None:
    shown = base64.b64encode(b"hush").decode()
    for text in (repr(secret(shown)), str(secret(shown)), f"{secret(shown)}"):
        assert text == "Secret(team/demo, keys: auth_token)"
    assert repr(Secret()) == "Secret(, keys: none)"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (base64.b64encode(b"hush").decode(), "hush"),
        (base64.b64encode(b" hush\n").decode(), "hush"),
        (base64.b64encode(b"hush\nhush").decode(), None),
        (base64.b64encode(b"hu\0sh").decode(), None),
        ("", None),
        (base64.b64encode(b"\n").decode(), None),
        ("not base64!", None),
        (base64.b64encode("hüsh".encode()).decode(), None),
    ],
)
def test_only_what_can_stand_in_a_header_is_a_text(value: str, text: str | None) -> None:
    assert secret(value).text("auth_token") == text
    assert secret(value).text("other") is None
