"""Brings RayJobs to their end: gang, cluster, submission, verdict, retries, deadlines, clean-up. One state a file."""

from muster.controllers.rayjob.reconciler import RayJobReconciler

__all__ = ["RayJobReconciler"]
