"""Nodes that have the images already are better."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muster.scheduler.conf import load_configuration
from muster.scheduler.constraints import PodConstraints
from muster.scheduler.images import ImageBook
from muster.scheduler.node import NodeInfo
from muster.scheduler.plugins.image_locality import image_locality
from muster.scheduler.resources import Resources
from muster.scheduler.specs import NodeSpec
from muster.scheduler.task import Shape
from muster.testing import Cluster, bindings, gang, node, nodes

MIB = 1024**2
RAY = PodConstraints(images=("ray:1",))


def with_images(name: str, **options: object) -> NodeSpec:
    images = {image: size * MIB for image, size in options.items() if isinstance(size, int)}
    return replace(node(name), images={"ray:1": images["ray"]} if "ray" in images else {})


@pytest.mark.parametrize(
    ("images", "sizes", "scores"),
    [
        (("ray:1",), [{"ray:1": 1000}, {}], [48, 0]),
        (("ray:1",), [{"ray:1": 1000}, {"ray:1": 1000}], [100, 100]),
        (("ray:1",), [{"ray:1": 5000}], [100]),
        (("ray:1",), [{"ray:1": 23}], [0]),
        (("ray:1", "ray:1"), [{"ray:1": 1000}], [100]),
        (("ray:1", "side:1"), [{"ray:1": 500, "side:1": 500}], [49]),
        (("other:1",), [{"ray:1": 1000}], [0]),
    ],
)
def test_a_node_scores_by_the_size_of_what_it_has(
    images: tuple[str, ...], sizes: list[dict[str, int]], scores: list[int]
) -> None:
    book, found = ImageBook(), []
    book.name(images)
    for index, held in enumerate(sizes):
        info = NodeInfo(f"n{index}")
        info.spec = replace(node(info.name), images={name: size * MIB for name, size in held.items()})
        book.add(book.named_on(info.spec), 1)
        found.append(info)
    shape = Shape(1, Resources(), Resources(), PodConstraints(images=images))
    assert image_locality(shape, found, book) == scores


def test_a_pod_goes_to_the_node_that_has_its_image_also_when_it_was_pulled_later() -> None:
    cluster = Cluster.of(nodes("n", 3), gang("one", 1, cpu=0, scheduling=RAY))
    cluster.settle(cluster.cycle())
    cluster.add(with_images("n-2", ray=1000))
    cluster.add(gang("two", 1, cpu=0.1, scheduling=RAY))
    assert bindings(cluster.cycle()) == {"two-w-0": "n-2"}
    cluster.add(with_images("n-2"), with_images("n-1", ray=1000))
    cluster.add(gang("three", 1, cpu=0.1, scheduling=RAY))
    assert bindings(cluster.cycle()) == {"three-w-0": "n-1"}


def test_images_that_no_pod_names_make_no_difference_between_nodes() -> None:
    cluster = Cluster.of(with_images("a", ray=1000), node("b"), gang("g", 1))
    cluster.cycle()
    assert len(cluster.cache.index.makes) == 1


def test_a_weight_of_0_switches_the_score_off() -> None:
    document = {
        "actions": "allocate",
        "tiers": [{"plugins": [{"name": "nodeorder", "arguments": {"imagelocality.weight": 0}}]}],
    }
    cluster = Cluster.of(
        node("a"),
        with_images("b", ray=1000),
        gang("g", 1, scheduling=RAY),
        configuration=load_configuration(document),
    )
    assert bindings(cluster.cycle()) == {"g-w-0": "a"}
