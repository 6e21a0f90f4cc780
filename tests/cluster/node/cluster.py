"""A kind cluster on this machine, with Ray's image on its workers: the node level of the harness.

A cluster lives in a run folder with its kubeconfig; the user's own is never touched. Unless it is kept it ends with
`stop`, and if its owner is killed, with the next start of any cluster (see `Runs`). A kept one, of which there may be
one of each name, outlives the process until `stop` is called by whoever knows its name.
"""

from __future__ import annotations

import contextlib
import functools
import json
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.cluster.cache import Cache
from tests.cluster.gobuild import go_binaries
from tests.cluster.node.docker import Docker
from tests.cluster.node.requirements import images_are_public
from tests.cluster.node.supply import PublicSupply, Supply, make_supply
from tests.cluster.process import CommandFailedError, run
from tests.cluster.progress import Steps
from tests.cluster.runs import Runs

LEVEL = "node"
CONFIGURATION = Path(__file__).parents[3] / "kind-config.yaml"

_READY = "180s"
_ADOPTION_SECONDS = 90.0
"""After an engine was killed its nodes start anew, and the API server refuses what it does not know yet."""

_RECORD = "cluster.json"


@dataclass(frozen=True, slots=True)
class _Record:
    """What a later process has to know of a cluster to take it over or down."""

    name: str
    public: bool

    def write(self, folder: Path) -> None:
        (folder / _RECORD).write_text(json.dumps(asdict(self)))


def _read_record(folder: Path) -> _Record | None:
    try:
        return _Record(**json.loads((folder / _RECORD).read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        # Not there, or the writer was killed before anything was made.
        return None


class NodeCluster:
    """The kind cluster `name`, as kind's `configuration` says. Kubeconfig and images are of use once it has started."""

    def __init__(
        self,
        name: str = "muster",
        *,
        configuration: Path = CONFIGURATION,
        steps: Steps | None = None,
        cache: Cache | None = None,
    ) -> None:
        self.name = name
        self._configuration = configuration
        self.steps = steps or Steps()
        self.cache = cache or Cache(steps=self.steps)
        self._runs = Runs(LEVEL, root=self.cache.root / "runs", cache=self.cache, destroy=self._destroy)
        self._held = contextlib.ExitStack()
        self._folder = self._runs.kept(name)

    @functools.cached_property
    def supply(self) -> Supply:
        """Where its engine and images come from: as the cluster that is there was made, or as the machine allows."""
        record = _read_record(self._folder)
        public = record.public if record else images_are_public()
        return make_supply(self.cache, self.steps, public=public)

    @property
    def kubeconfig(self) -> Path:
        """An administrator's file for the cluster."""
        return self._folder / "kubeconfig"

    @property
    def docker(self) -> Docker:
        """The engine that the nodes run on."""
        return self.supply.docker

    @property
    def docker_host(self) -> str | None:
        """The engine's address, or None for the one that this environment names."""
        return self.docker.host

    @property
    def ray_image(self) -> str:
        """The name of Ray's image, which the workers have."""
        return self.supply.ray_image

    @property
    def redis_image(self) -> str:
        """The name of an image with `redis-server`, which the workers have or can pull."""
        return self.supply.redis_image

    @property
    def base_image(self) -> str:
        """The name of the image that Muster's own is built on."""
        return self.supply.base_image

    @property
    def kubectl(self) -> Path:
        """The program, of the cluster's version."""
        return self._program("kubectl")

    def start(self, *, keep: bool = False, reuse: bool = False, meanwhile: Callable[[], object] | None = None) -> None:
        """Bring the cluster up with all nodes Ready, building what it needs.

        With `keep` it outlives this process. With `reuse` a healthy kept cluster of this name is taken as it is (and
        one that has to be made is kept). Without it, an old one is replaced. `meanwhile` is called, if a cluster has
        to be made, as soon as there is an engine. Raises PrerequisiteError, TimeoutError or CommandFailedError, and
        leaves nothing then.
        """
        self._held.close()
        with contextlib.ExitStack() as undo:
            # Two clusters of one name would have containers of one name.
            undo.enter_context(self.cache.lock(f"cluster-{self.name}"))
            self._runs.recover()
            if reuse and self._adopt():
                return
            self.stop()
            if keep or reuse:
                with self._runs.keep(self.name) as folder:
                    self._create(folder, meanwhile)
            else:
                self._create(undo.enter_context(self._runs.own()), meanwhile)
                self._held = undo.pop_all()

    def stop(self) -> None:
        """Remove the cluster and all that it made; nothing happens if there is none."""
        self._held.close()
        self._runs.remove(self.name)
        self._folder = self._runs.kept(self.name)
        self.__dict__.pop("supply", None)

    def status(self) -> str | None:
        """Return a line that says which nodes are Ready, or None when there is no kept cluster of this name."""
        if not self.kubeconfig.exists():
            return None
        ready = '{range .items[*]}{.metadata.name}={.status.conditions[?(@.type=="Ready")].status} {end}'
        try:
            printed = self._kubectl("get", "nodes", "--request-timeout=5s", f"--output=jsonpath={ready}")
        except CommandFailedError:
            return f"{self.name}: the API server does not answer; KUBECONFIG={self.kubeconfig}"
        nodes = [word.removesuffix("=True") for word in printed.split() if word.endswith("=True")]
        return f"{self.name}: Ready are {', '.join(nodes) or 'no nodes'}; KUBECONFIG={self.kubeconfig}"

    def load_image(self, tag: str) -> None:
        """Copy an image from the engine to the workers, where pods run."""
        with self.steps.step(f"Loading {tag} into the workers"):
            self._kind("load", "docker-image", tag, f"--nodes={','.join(self._workers())}")

    def load_archive(self, archive: Path, *, title: str | None = None) -> None:
        """Copy an image from its archive to the workers; `title` says in the progress what it is."""
        with self.steps.step(f"Loading {title or archive} into the workers"):
            self._kind("load", "image-archive", archive, f"--nodes={','.join(self._workers())}")

    def export_logs(self, folder: Path) -> None:
        """Write the logs of all nodes and pods into `folder`."""
        self._kind("export", "logs", folder)

    def _create(self, folder: Path, meanwhile: Callable[[], object] | None) -> None:
        self._folder = folder
        public = isinstance(self.supply, PublicSupply)
        if public:
            self._refuse_a_strangers_name()
        _Record(self.name, public).write(folder)
        self.supply.prepare_cluster()
        with ThreadPoolExecutor(2) as beside:
            creation = beside.submit(self._create_nodes)
            other = beside.submit(meanwhile) if meanwhile else None
            # The workers take images long before they have joined the cluster.
            while not (creation.done() or self._workers_take_images()):
                time.sleep(1)
            if creation.done():
                creation.result()
            if self.supply.ray_archive:
                self.load_archive(self.supply.ray_archive, title=self.ray_image)
            else:
                self.load_image(self.ray_image)
            creation.result()
            if other:
                other.result()
        self._wait_ready()

    def _create_nodes(self) -> None:
        image = [f"--image={self.supply.node_image}"] if self.supply.node_image else []
        with self.steps.step(f"Creating the kind cluster {self.name}"):
            self._kind("create", "cluster", f"--config={self._configuration}", *image)

    def _workers_take_images(self) -> bool:
        """Tell whether the container runtimes of all workers answer; kind makes and starts them one by one."""
        try:
            workers = self._workers()
            for worker in workers:
                self.docker.run("exec", worker, "ctr", "version")
        except CommandFailedError:
            return False
        return len(workers) == self._configuration.read_text().count("role: worker")

    def _refuse_a_strangers_name(self) -> None:
        """Without a record nothing is taken down, so that a user's own cluster of this name outlives our failure."""
        if self.name in self._kind_anywhere("get", "clusters").split():
            raise CommandFailedError(
                f"the Docker engine has a kind cluster {self.name} that was not made here; "
                f"if nobody needs it, remove it with: {self._program('kind')} delete cluster --name={self.name}"
            )

    def _wait_ready(self) -> None:
        with self.steps.step("Waiting until the nodes are Ready"):
            self._kubectl("wait", "--for=condition=Ready", "node", "--all", f"--timeout={_READY}")
            in_system = ("--namespace=kube-system", f"--timeout={_READY}")
            self._kubectl(*in_system, "rollout", "status", "deployment/coredns")
            self._kubectl(*in_system, "wait", "--for=condition=Ready", "pod", "--all")

    def _adopt(self) -> bool:
        """Take the kept cluster of this name if it is, or soon becomes, healthy."""
        self._folder = self._runs.kept(self.name)
        if not self.kubeconfig.exists():
            return False
        self.supply.start_engine()
        deadline = time.monotonic() + _ADOPTION_SECONDS
        while True:
            try:
                self._wait_ready()
            except CommandFailedError as error:
                if time.monotonic() > deadline:
                    self.steps.note(f"The kept cluster {self.name} is not healthy and is made anew: {error}")
                    return False
                time.sleep(1)
            else:
                return True

    def _destroy(self, folder: Path) -> None:
        """Undo a run of this or any other name: the cluster, and an engine of our own with it if it was the last."""
        record = _read_record(folder)
        if record is not None:
            supply = make_supply(self.cache, self.steps, public=record.public)
            if supply.engine_in_use():
                with self.steps.step(f"Removing the kind cluster {record.name}"):
                    supply.start_engine()
                    run(
                        [self._program("kind"), "delete", "cluster", f"--name={record.name}"],
                        environment={**supply.docker.environment, "KUBECONFIG": str(folder / "kubeconfig")},
                    )
                    supply.stop_engine()
        shutil.rmtree(folder)

    def _workers(self) -> list[str]:
        names = self._kind("get", "nodes").split()
        return sorted(name for name in names if "control-plane" not in name)

    def _kind(self, *command: str | Path) -> str:
        return self._kind_anywhere(*command, f"--name={self.name}")

    def _kind_anywhere(self, *command: str | Path) -> str:
        environment = {**self.docker.environment, "KUBECONFIG": str(self.kubeconfig)}
        return run([self._program("kind"), *command], environment=environment)

    def _kubectl(self, *command: str) -> str:
        return run([self.kubectl, f"--kubeconfig={self.kubeconfig}", *command])

    def _program(self, name: str) -> Path:
        return go_binaries([name], cache=self.cache, steps=self.steps)[name]
