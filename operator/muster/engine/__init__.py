"""Carries the scheduler's decisions out: watch events become model changes, outcomes become writes."""
