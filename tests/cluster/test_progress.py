from __future__ import annotations

import io
import re
import threading

import pytest

from tests.cluster.progress import Steps


def lines(stream: io.StringIO) -> list[str]:
    return re.sub(r"\d+ s$", "N s", stream.getvalue(), flags=re.MULTILINE).splitlines()


def test_a_log_gets_one_plain_line_at_the_begin_and_one_at_the_end() -> None:
    stream = io.StringIO()
    with Steps(stream).step("Building [etcd]") as step:
        step.detail("not for a log")
    assert lines(stream) == ["Building [etcd] ...", "Building [etcd]: done in N s"]


def test_a_failed_step_is_marked_and_the_error_passes_through() -> None:
    stream = io.StringIO()
    with pytest.raises(ValueError, match="boom"), Steps(stream).step("Building"):
        raise ValueError("boom")
    assert lines(stream) == ["Building ...", "Building: failed after N s"]


def test_long_lines_are_not_broken() -> None:
    stream = io.StringIO()
    Steps(stream).note("x" * 300)
    assert lines(stream) == ["x" * 300]


def test_a_terminal_shows_the_running_step_with_its_detail_and_keeps_the_outcome() -> None:
    stream = io.StringIO()
    steps = Steps(stream, terminal=True)
    with steps.step("Outer [a]") as outer, steps.step("Inner"):
        outer.detail("where [it] is")
    shown = stream.getvalue()
    assert "\x1b[" in shown
    assert "Outer [a]: done in" in shown
    assert "Inner: done in" in shown


def test_steps_of_several_threads_may_overlap() -> None:
    stream = io.StringIO()
    steps = Steps(stream, terminal=True)
    both_run = threading.Barrier(2)

    def work(title: str) -> None:
        with steps.step(title):
            both_run.wait(10)

    threads = [threading.Thread(target=work, args=(title,)) for title in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert {"one: done in", "two: done in"} <= set(re.findall(r"(?:one|two): done in", stream.getvalue()))


def test_steps_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    with Steps().step("Building"):
        pass
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Building: done in" in captured.err
