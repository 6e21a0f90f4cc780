"""End-to-end tests: Muster in its own image and under its own RBAC, on real nodes, with real Ray.

They see only what any user sees: the API server. `make e2e` runs them on kind, `KUBECONFIG=… make e2e CLUSTER=current`
on any other cluster.
"""
