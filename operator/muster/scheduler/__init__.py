"""Decides which gang runs where. Pure: no I/O, no clock, no randomness, standard library only."""
