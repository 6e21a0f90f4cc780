"""Ray's own autoscaler: which of its settings go together."""

from __future__ import annotations

import re

from muster.api.errors import FieldProblem
from muster.ray.autoscaler import CONTAINER
from muster.ray.validation.view import ClusterView, Problems

_START_COMMAND = "KUBERAY_GEN_AUTOSCALER_START_CMD"
_V2_ENV = "RAY_enable_autoscaler_v2"
_PRIORITY_SINCE = (2, 56, 0)
_VERSION = re.compile(r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})([-+.].*|rc\d+|)")


def suspended_groups(view: ClusterView) -> Problems:
    """The autoscaler would start the workers of a suspended group again."""
    for path, group in view.worker_groups():
        if group.suspend and view.spec.autoscaling:
            text = "can't be true with enableInTreeAutoscaling; switch autoscaling off to suspend a group"
            yield FieldProblem(f"{path}.suspend", text)


def group_idle_timeout(view: ClusterView) -> Problems:
    """Only the second autoscaler has an idle time-out for each group."""
    for path, group in view.worker_groups():
        timeout = group.idle_timeout_seconds
        if timeout is None:
            continue
        if timeout < 0:
            yield FieldProblem(f"{path}.idleTimeoutSeconds", f"must not be negative, got {timeout}")
        if not view.autoscaler_v2:
            text = "needs the second autoscaler; set autoscalerOptions.version to v2"
            yield FieldProblem(f"{path}.idleTimeoutSeconds", text)


def group_priority(view: ClusterView) -> Problems:
    """Only the second autoscaler of a recent Ray knows priorities of groups."""
    for path, group in view.worker_groups():
        if not group.priority:
            continue
        version = parse_version(view.spec.ray_version or "")
        if version is None or version < _PRIORITY_SINCE:
            written = f'"{view.spec.ray_version}"' if view.spec.ray_version else "not set"
            text = f"needs Ray 2.56.0 or newer, but rayVersion is {written}"
            yield FieldProblem(f"{path}.priority", text)
        if not view.autoscaler_v2:
            text = "needs the second autoscaler; set autoscalerOptions.version to v2"
            yield FieldProblem(f"{path}.priority", text)


def version_by_environment(view: ClusterView) -> Problems:
    """The autoscaler's version is said once, and only where there is one."""
    env = view.head.template.first_container_env()
    path = f"{view.head.template.path}.spec.containers[0].env"
    options = view.spec.autoscaler_options
    if not view.spec.autoscaling and view.autoscaler_v2_by_env:
        yield FieldProblem(path, f"{_V2_ENV} needs enableInTreeAutoscaling: true; set it or remove the variable")
    if options is not None and options.version and _V2_ENV in env:
        yield FieldProblem(path, f"{_V2_ENV} and autoscalerOptions.version say the same thing; remove the variable")


def restart_policy(view: ClusterView) -> Problems:
    """The second autoscaler replaces pods itself, so that the kubelet must not restart them."""
    options = view.spec.autoscaler_options
    if not view.spec.autoscaling or options is None or options.version != "v2":
        return
    for group in view.groups:
        spec = group.template.parsed.spec
        if spec is not None and spec.restart_policy not in (None, "", "Never"):
            text = f"must be Never with autoscalerOptions.version v2, not {spec.restart_policy}"
            yield FieldProblem(f"{group.template.path}.spec.restartPolicy", text)


def container_name(view: ClusterView) -> Problems:
    """The autoscaler's own container has its name for itself."""
    if not view.spec.autoscaling:
        return
    template = view.head.template
    for kind, listed in (
        ("containers", template.parsed.containers),
        ("initContainers", template.parsed.init_containers),
    ):
        for index, container in enumerate(listed):
            if container.name == CONTAINER:
                text = f'"{CONTAINER}" is the name of the container that enableInTreeAutoscaling adds; choose another'
                yield FieldProblem(f"{template.path}.spec.{kind}[{index}].name", text)


def autoscaler_options(view: ClusterView) -> Problems:
    """The idle time-out is no negative time; the start command's variable is the operator's to set."""
    options = view.spec.autoscaler_options
    if options is None:
        return
    path = f"{view.path}.autoscalerOptions"
    if options.idle_timeout_seconds is not None and options.idle_timeout_seconds < 0:
        yield FieldProblem(f"{path}.idleTimeoutSeconds", f"must not be negative, got {options.idle_timeout_seconds}")
    for index, variable in enumerate(options.env or []):
        if variable.get("name") == _START_COMMAND:
            yield FieldProblem(f"{path}.env[{index}]", f"{_START_COMMAND} is set by the operator; remove it")


def parse_version(text: str) -> tuple[int, int, int] | None:
    """The three numbers of a Ray version; None when the text is none."""
    match = _VERSION.fullmatch(text.strip().removeprefix("v"))
    return (int(match[1]), int(match[2]), int(match[3])) if match else None
