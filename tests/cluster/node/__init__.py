"""The harness's `node` level: a real kind cluster with one control plane and three workers.

With a Docker engine and an image registry in reach it is kind as everyone runs it. Where either is missing, the harness
runs an engine of its own and makes every image from Go modules, Debian packages and Python packages.
"""
