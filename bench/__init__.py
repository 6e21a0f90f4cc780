"""Benchmarks; nothing here is run by an installed Muster.

`python -m bench` (`make bench`) measures schedulers side by side on a real API server. The other modules with a `main`
measure one part each and run on their own: `python -m bench.scheduler_cycle`, `scheduler_growth` and `simulate` without
an API server, `controllers` and `standing` with one.
"""
