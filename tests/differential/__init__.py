"""Muster and KubeRay side by side: the same manifests under each operator, and every object that comes of them.

A difference that `listed.py` (and docs/differences.md, with the reason) does not have fails, and so does a listed one
that no longer occurs. Nodes, kubelets, the Job controller and Ray itself are stand-ins, the same for both.
"""
