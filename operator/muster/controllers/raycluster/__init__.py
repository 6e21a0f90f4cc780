"""Brings RayClusters about: services, PodGroup, head and worker pods, suspension, status."""

from muster.controllers.raycluster.reconciler import RayClusterReconciler

__all__ = ["RayClusterReconciler"]
