"""`muster run`: the operator."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from muster.controllers.batch_scheduler import BatchScheduler

if TYPE_CHECKING:  # it takes long to import, and `--help` needs none of it
    from muster.app import Component

_DOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


class LogLevel(StrEnum):
    """How much the operator logs."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def run(
    components: Annotated[
        str,
        typer.Option(
            metavar="NAMES", help="What runs in this process: controllers, scheduler, admission, with commas."
        ),
    ] = "controllers,scheduler,admission",
    kubeconfig: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A kubeconfig file; without one the pod's own service account is used."),
    ] = None,
    scheduler_name: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Pods with this schedulerName are ours, and Ray pods get the first; repeatable. [muster, volcano; "
            "with --batch-scheduler=volcano only muster]",
        ),
    ] = None,
    batch_scheduler: Annotated[
        BatchScheduler | None,
        typer.Option(
            help="Who places the gangs of Ray clusters: muster holds their pods back by the gate muster.dev/gang, "
            "volcano leaves them to Volcano, with none there are no gangs and no queues. Must be said where the "
            "controllers run without the scheduler. [muster]",
            show_default=False,
        ),
    ] = None,
    use_kubernetes_proxy: Annotated[
        bool,
        typer.Option(
            help="Reach Ray's dashboards through the API server: for an operator outside of the cluster. Its account "
            "needs get and create on pods/proxy."
        ),
    ] = False,
    watch_namespace: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMESPACE", help="Reconcile RayJobs and RayClusters of this namespace only; repeatable. [all]"
        ),
    ] = None,
    scheduler_configuration: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Actions, tiers and plugins in Volcano's format; read again when it changes."
        ),
    ] = None,
    submitter_image: Annotated[
        str | None,
        typer.Option(metavar="IMAGE", help="Image of the submitter Jobs; the image of this pod if not given."),
    ] = None,
    namespace: Annotated[
        str, typer.Option(metavar="NAMESPACE", help="Where the Leases live.", envvar="POD_NAMESPACE")
    ] = "muster-system",
    pod_name: Annotated[
        str | None, typer.Option(metavar="NAME", help="The name of this pod.", envvar="POD_NAME")
    ] = None,
    leader_election: Annotated[
        bool, typer.Option(help="Wait for the Leases, so that of each component only one works at a time.")
    ] = True,
    create_queues: Annotated[
        bool,
        typer.Option(
            help="Create a Queue that a job names and that does not exist, with weight 1 and no cap. Without this the "
            "job waits until somebody creates it; root and default are created in any case."
        ),
    ] = True,
    dead_node_timeout: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help="Seconds after which a Ray pod on a node that does not answer any more is replaced.",
        ),
    ] = 300.0,
    gcs_ft_redis_cleanup: Annotated[
        bool,
        typer.Option(
            help="Hold a deleted RayCluster whose state is in a Redis until that has been cleared out.",
            envvar="ENABLE_GCS_FT_REDIS_CLEANUP",
        ),
    ] = True,
    delete_finished_jobs: Annotated[
        bool,
        typer.Option(
            help="Delete the RayJob itself, and with it its submitter and its logs, where shutdownAfterJobFinishes "
            "would delete its cluster.",
            envvar="DELETE_RAYJOB_CR_AFTER_JOB_FINISHES",
        ),
    ] = False,
    finished_cluster_ttl: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help="Seconds after which the cluster of a finished RayJob goes that neither shutdownAfterJobFinishes "
            "(false included) nor a rule of its deletionStrategy says anything about. [it stays]",
        ),
    ] = None,
    status_check_timeout: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help="Seconds without an answer from Ray's dashboard after which a running job counts as lost.",
            envvar="RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS",
        ),
    ] = 300.0,
    submitter_grace: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help="Seconds that a submitter has to end after its Ray job did.",
            envvar="RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS",
        ),
    ] = 300.0,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A file of kind Configuration (KubeRay's config.ray.io/v1alpha1): sidecars, variables, annotations "
            "and labels of every Ray pod. Read once.",
        ),
    ] = None,
    login_shell: Annotated[
        bool, typer.Option(help="Run Ray in a login shell (bash -cl).", envvar="ENABLE_LOGIN_SHELL")
    ] = False,
    inject_probes: Annotated[
        bool,
        typer.Option(
            help="Give Ray containers probes where their template has none.", envvar="ENABLE_PROBES_INJECTION"
        ),
    ] = True,
    inject_init_container: Annotated[
        bool,
        typer.Option(
            help="Have workers wait for their head by an init container, wait-gcs-ready.",
            envvar="ENABLE_INIT_CONTAINER_INJECTION",
        ),
    ] = True,
    fixed_head_name: Annotated[
        bool,
        typer.Option(
            help="Name head pods CLUSTER-head, without a suffix.", envvar="ENABLE_DETERMINISTIC_HEAD_POD_NAME"
        ),
    ] = False,
    head_cluster_ip: Annotated[
        bool,
        typer.Option(
            help="Give head services a cluster IP; without it they are headless.",
            envvar="ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE",
        ),
    ] = False,
    random_pod_delete: Annotated[
        bool,
        typer.Option(
            help="Delete workers beyond replicas also where Ray's autoscaler has not named them.",
            envvar="ENABLE_RANDOM_POD_DELETE",
        ),
    ] = False,
    cluster_domain: Annotated[
        str, typer.Option(metavar="DOMAIN", help="The cluster's DNS domain.", envvar="CLUSTER_DOMAIN")
    ] = "cluster.local",
    health_port: Annotated[int, typer.Option(metavar="PORT", help="Port of /healthz and /readyz; 0 for none.")] = 8082,
    admission_port: Annotated[
        int,
        typer.Option(
            metavar="PORT", help="Port of the webhook that judges RayClusters and RayJobs as they are applied."
        ),
    ] = 9443,
    admission_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A name by which the API server calls the webhook, for its certificate; repeatable. "
            "[muster-admission.NAMESPACE.svc]",
        ),
    ] = None,
    admission_certificates: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="A folder with tls.crt and tls.key for the webhook that somebody else renews (cert-manager), and who "
            "also tells the API server what to trust; without it Muster does both.",
        ),
    ] = None,
    metrics_port: Annotated[
        int, typer.Option(metavar="PORT", help="Port of /metrics, for Prometheus; 0 for none.")
    ] = 8080,
    gang_repair_timeout: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            help="Seconds in which a gang that lost members is completed, else rolled back; so long, too, "
            "kube-scheduler has to bind a pod that claims devices.",
        ),
    ] = 60.0,
    admission_timeout: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            help="Seconds after which an admitted gang without a place gives its reservation back, and a pod that "
            "should leave is not waited for any more.",
        ),
    ] = 300.0,
    starvation_timeout: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            help="Seconds after which room is held for a gang that waits; 0: never. A Queue may differ.",
        ),
    ] = 600.0,
    log_level: Annotated[LogLevel, typer.Option(help="How much to log.")] = LogLevel.INFO,
) -> None:
    """Run the operator: reconcile RayJobs and RayClusters, schedule their gangs, and judge them at admission."""
    import asyncio
    import logging

    from muster.app import Options, operate
    from muster.operator_configuration import OperatorConfigurationError, read_operator_configuration
    from muster.ray.every_pod import EveryPod
    from muster.ray.pod_options import PodOptions

    chosen = _components(components)
    scheduler_names = _scheduler_names(chosen, batch_scheduler, scheduler_name)
    _check_names(watch_namespace or (), cluster_domain)
    logging.basicConfig(level=log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        every_pod = read_operator_configuration(config) if config is not None else EveryPod()
    except OperatorConfigurationError as error:
        raise typer.BadParameter(str(error), param_hint="--config") from error
    # They tell of every request at INFO.
    for library in ("httpx", "aiohttp.access"):
        logging.getLogger(library).setLevel(max(logging.WARNING, logging.getLogger().level))
    options = Options(
        components=chosen,
        kubeconfig=kubeconfig,
        scheduler_names=scheduler_names,
        scheduler_configuration=scheduler_configuration,
        submitter_image=submitter_image,
        namespace=namespace,
        pod_name=pod_name,
        leader_election=leader_election,
        health_port=health_port,
        metrics_port=metrics_port,
        gang_repair_timeout=gang_repair_timeout,
        admission_timeout=admission_timeout,
        starvation_timeout=starvation_timeout,
        create_queues=create_queues,
        batch_scheduler=batch_scheduler or BatchScheduler.MUSTER,
        use_kubernetes_proxy=use_kubernetes_proxy,
        redis_cleanup=gcs_ft_redis_cleanup,
        dead_node_timeout=dead_node_timeout,
        watch_namespaces=tuple(watch_namespace or ()),
        delete_finished_jobs=delete_finished_jobs,
        finished_cluster_ttl=finished_cluster_ttl,
        admission_port=admission_port,
        admission_hosts=tuple(admission_host or ()),
        admission_certificates=admission_certificates,
        random_pod_delete=random_pod_delete,
        status_check_timeout=status_check_timeout,
        submitter_grace=submitter_grace,
        pods=PodOptions(
            cluster_domain=cluster_domain,
            login_shell=login_shell,
            inject_probes=inject_probes,
            inject_init_container=inject_init_container,
            fixed_head_name=fixed_head_name,
            head_cluster_ip=head_cluster_ip,
            every_pod=every_pod,
        ),
    )
    raise typer.Exit(asyncio.run(operate(options)))


def _components(text: str) -> frozenset[Component]:
    """The components that are named. Raises BadParameter."""
    from muster.app import Component

    try:
        chosen = frozenset(Component(name.strip()) for name in text.split(",") if name.strip())
    except ValueError as error:
        raise typer.BadParameter(f"{error}; known are {', '.join(Component)}", param_hint="--components") from error
    if not chosen:
        raise typer.BadParameter("name at least one component", param_hint="--components")
    return chosen


def _scheduler_names(
    chosen: frozenset[Component], batch_scheduler: BatchScheduler | None, named: list[str] | None
) -> tuple[str, ...]:
    """Whose pods are ours. Raises BadParameter where nobody would place the gangs, or two schedulers would."""
    from muster.app import Component

    schedules = Component.SCHEDULER in chosen
    if batch_scheduler is None and Component.CONTROLLERS in chosen and not schedules:
        message = "say muster where Muster's scheduler runs in another process; else volcano or none"
        raise typer.BadParameter(message, param_hint="--batch-scheduler")
    others = batch_scheduler is BatchScheduler.VOLCANO
    names = tuple(named or (("muster",) if others else ("muster", "volcano")))
    if others and schedules and "volcano" in names:
        message = "volcano's pods would be placed twice, by Volcano and as --scheduler-name says by Muster; name muster"
        raise typer.BadParameter(message, param_hint="--scheduler-name")
    return names


def _check_names(namespaces: Iterable[str], cluster_domain: str) -> None:
    """Raises BadParameter for what can't be a name."""
    for name in namespaces:
        if not _NAMESPACE.fullmatch(name):
            raise typer.BadParameter(f'"{name}" can\'t name a namespace', param_hint="--watch-namespace")
    if not _DOMAIN.fullmatch(cluster_domain):
        raise typer.BadParameter(f'"{cluster_domain}" is no DNS domain', param_hint="--cluster-domain")
