"""Why something does not run: the answer of `muster explain`.

It is worked out by the scheduler itself, on a model of the cluster (or of manifests, or of a snapshot) and with the
rights of who asks. Where that can't be done, what the scheduler last wrote to the PodGroup is told, and how old it is.
"""
