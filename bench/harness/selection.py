"""Which brokers a command line asks for."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from bench.harness import builds
from bench.harness.brokers import Broker, byte_copier, custom, mosquitto, tidegate
from bench.harness.errors import MeasurementError

BROKERS: dict[str, Callable[[], Broker]] = {
    "mosquitto": mosquitto,
    "tidegate": lambda: tidegate("tidegate", builds.plain()),
    "compiled": lambda: tidegate("compiled", builds.compiled()),
    "copier": lambda: byte_copier(builds.generator()),
}
USUAL = "mosquitto,tidegate,compiled"
REFERENCE = "mosquitto"
"""Whose figures ratios refer to."""


def words(text: str) -> list[str]:
    """Return the words between the commas."""
    return [word for word in text.split(",") if word]


def labelled_tree(text: str) -> tuple[str, Path]:
    """Return label and folder of `LABEL=FOLDER`; without a label it is the folder's name."""
    label, _, folder = text.rpartition("=")
    root = Path(folder).resolve()
    if not (root / "gateway").is_dir():
        raise ValueError(f"{root} has no folder gateway")
    return label or root.name, root


def found(
    names: Sequence[str], command: str | None = None, trees: Mapping[str, Path] | None = None
) -> list[Broker]:
    """Return the brokers that can be started; `command` is another way to start Tidegate.

    Of each other tree there are the same builds as of this one, under its label.
    """
    ways = {name: BROKERS[name] for name in names}
    if "tidegate" in ways and command:
        ways["tidegate"] = partial(custom, "tidegate", command)
    for label, root in (trees or {}).items():
        ways |= _of_tree(names, label, builds.Tree(root, builds.BUILD / "trees" / label))
    brokers = []
    for name, way in ways.items():
        try:
            brokers.append(way())
        except MeasurementError as failure:
            print(f"left out: {name}: {failure}")
    return brokers


def _of_tree(
    names: Sequence[str], label: str, tree: builds.Tree
) -> dict[str, Callable[[], Broker]]:
    ways: dict[str, Callable[[], Broker]] = {}
    if "tidegate" in names:
        ways[label] = lambda: tidegate(label, builds.plain(tree))
    if "compiled" in names:
        name = f"{label}-compiled"
        ways[name] = lambda: tidegate(name, builds.compiled(tree))
    return ways
