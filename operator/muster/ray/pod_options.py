"""What the operator's own configuration says about the pods it makes: the same for every cluster."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PodOptions:
    """The operator's choices for Ray pods.

    `login_shell` runs commands in a login shell; `inject_probes` and `inject_init_container` add what a template does
    not have itself.
    """

    cluster_domain: str = "cluster.local"
    login_shell: bool = False
    inject_probes: bool = True
    inject_init_container: bool = True

    @property
    def shell(self) -> list[str]:
        """The command that runs one string of Ray's start-up."""
        return ["/bin/bash", "-cl" if self.login_shell else "-c", "--"]
