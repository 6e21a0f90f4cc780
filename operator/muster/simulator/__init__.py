"""The real scheduler on manifests, without a cluster.

Manifests (or a snapshot) become typed objects, these the scheduler's model by the same decoders that the engine uses;
then come cycles, and between them what a cluster would do with the decisions: bound pods run, evicted ones leave.
"""
