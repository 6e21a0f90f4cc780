"""KubeRay's own end-to-end tests of RayJob and RayCluster, run against Muster.

They are Go programs from KubeRay's module, unchanged: what passes here, a user of KubeRay may rely on. `make
compatibility` builds them, runs each test by name on a kind cluster with Muster in it, and prints a table;
docs/compatibility.md has the result, with the reason of each failure. It is no part of `make test`: it takes the better
part of an hour, and what a test here finds gets a test of our own.
"""
