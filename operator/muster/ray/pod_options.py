"""What the operator's own configuration says about the pods it makes: the same for every cluster."""

from __future__ import annotations

from dataclasses import dataclass, field

from muster.ray.every_pod import EveryPod


@dataclass(frozen=True, slots=True)
class PodOptions:
    """The operator's choices for Ray pods.

    `login_shell` runs commands in a login shell; `inject_probes` and `inject_init_container` add what a template does
    not have itself, `every_pod` what a site's configuration says. With `fixed_head_name` all heads of a cluster have
    one name; with `head_cluster_ip` head services have an address of their own.
    """

    cluster_domain: str = "cluster.local"
    login_shell: bool = False
    inject_probes: bool = True
    inject_init_container: bool = True
    fixed_head_name: bool = False
    head_cluster_ip: bool = False
    every_pod: EveryPod = field(default_factory=EveryPod)

    @property
    def shell(self) -> list[str]:
        """The command that runs one string of Ray's start-up."""
        return ["/bin/bash", "-cl" if self.login_shell else "-c", "--"]
