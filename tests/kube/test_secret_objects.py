from __future__ import annotations

import base64

import pytest

from muster.kube.object_base import ObjectMeta
from muster.kube.secret_objects import Secret, TextFault


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
        (base64.b64encode(b"hush\nhush").decode(), TextFault.SEVERAL_LINES),
        (base64.b64encode(b"hu\0sh").decode(), TextFault.CHARACTERS),
        ("", TextFault.EMPTY),
        (base64.b64encode(b"\n").decode(), TextFault.EMPTY),
        ("not base64!", TextFault.NOT_BASE64),
        ("ü", TextFault.NOT_BASE64),
        (base64.b64encode("hüsh".encode()).decode(), TextFault.CHARACTERS),
        (base64.b64encode("hush\u2028hush".encode()).decode(), TextFault.SEVERAL_LINES),
        ("/wAKgIE=", TextFault.NOT_UTF8),
    ],
)
def test_only_what_can_stand_in_a_header_is_a_text_and_the_fault_is_named(value: str, text: str | TextFault) -> None:
    found = secret(value)
    assert (found.text("auth_token") or found.fault("auth_token")) == text
    assert (found.text("auth_token") is None) == (found.fault("auth_token") is not None)
    assert (found.text("other"), found.fault("other")) == (None, TextFault.MISSING)
