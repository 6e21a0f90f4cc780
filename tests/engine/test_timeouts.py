"""Time-outs of the command line over the configuration's own."""

from __future__ import annotations

from dataclasses import replace

from muster.engine.configuration_source import FixedConfiguration
from muster.engine.timeouts import WithTimeouts
from muster.scheduler.conf import DEFAULT


def test_the_time_outs_are_laid_over_the_source_and_all_else_is_kept() -> None:
    source = WithTimeouts(FixedConfiguration(DEFAULT), gang_repair=7.0, admission=11.0, starvation=13.0)
    assert source.current == replace(DEFAULT, gang_repair_timeout=7.0, admission_timeout=11.0, starvation_timeout=13.0)


def test_an_unchanged_source_gives_the_same_object_again() -> None:
    source = WithTimeouts(FixedConfiguration(DEFAULT), gang_repair=7.0, admission=11.0, starvation=13.0)
    assert source.current is source.current
