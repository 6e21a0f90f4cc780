"""Which systems are measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.controllers.systems import KUBERAY, MUSTER, UnknownSystem, chosen_systems


def test_built_in_systems_come_in_the_order_in_which_they_are_named() -> None:
    assert chosen_systems(["kuberay", "muster"], []) == [KUBERAY, MUSTER]


def test_a_given_system_comes_before_the_built_in_ones() -> None:
    assert [system.name for system in chosen_systems(["muster"], ["mine=x"])] == ["mine", "muster"]


def test_a_command_is_split_as_a_shell_does_and_finds_its_kubeconfig() -> None:
    (system,) = chosen_systems([], ["mine=/bin/mine --kubeconfig={kubeconfig} --flag 'two words' --other={braces}"])
    words = ["/bin/mine", "--kubeconfig=/a b/k", "--flag", "two words", "--other={braces}"]
    assert [program.command(Path("/a b/k")) for program in system.programs] == [words]


def test_a_system_that_is_given_twice_has_two_processes() -> None:
    systems = chosen_systems([], ["mine=one", "other=x", "mine=two", "mine=three"])
    assert [system.name for system in systems] == ["mine", "other"]
    assert [program.name for program in systems[0].programs] == ["mine", "mine-2", "mine-3"]
    assert [program.command(Path("k")) for program in systems[0].programs] == [["one"], ["two"], ["three"]]


@pytest.mark.parametrize("command", ["mine", "=x", "mine=", "mine= ", "muster=x"])
def test_what_is_no_further_system_is_refused_in_its_own_words(command: str) -> None:
    with pytest.raises(UnknownSystem, match=f"--system '{command}' must be NAME=COMMAND"):
        chosen_systems([], [command])


def test_an_unknown_name_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UnknownSystem, match="no system 'volcano'; there are ceiling, muster, kuberay"):
        chosen_systems(["volcano"], [])
