"""Tests that have to wait: they run side by side, so that all wait as long as the longest."""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from tests.conformance.support.kept import VERSIONS
from tests.conformance.support.peer import Peers
from tests.conformance.support.statements import keeps, version_of


@dataclass(frozen=True, slots=True)
class Scenario:
    """A conversation in one protocol version that takes its time."""

    name: str
    statements: tuple[str, ...]
    version: int
    run: Callable[[Peers, int], None]


SCENARIOS: list[Scenario] = []
"""All that were defined, by the `scenario` decorator."""


def scenario(*statements: str) -> Callable[[Callable[[Peers, int], None]], None]:
    """Define a scenario, in each version whose statements it is for."""

    def define(run: Callable[[Peers, int], None]) -> None:
        for version, name in VERSIONS.items():
            names = tuple(each for each in statements if version_of(each) == name)
            if names:
                SCENARIOS.append(Scenario(run.__name__, names, version, run))

    return define


def params(scenarios: Iterable[Scenario]) -> list[object]:
    """Return a parameter set for each scenario, its id with the statements' numbers."""
    return [
        pytest.param(
            each, id=f"{' '.join(each.statements)} {each.name}", marks=keeps(*each.statements)
        )
        for each in scenarios
    ]


class Running:
    """All scenarios, each in a thread of its own and with peers of its own."""

    def __init__(self, open_peers: Callable[[], Peers]) -> None:
        self._executor = ThreadPoolExecutor(len(SCENARIOS))
        self._open_peers = open_peers
        self._futures: dict[tuple[str, int], Future[None]] = {
            (each.name, each.version): self._executor.submit(self._run, each) for each in SCENARIOS
        }

    def result(self, wanted: Scenario) -> None:
        """Wait for the scenario and raise what it raised."""
        self._futures[wanted.name, wanted.version].result()

    def close(self) -> None:
        self._executor.shutdown()

    def _run(self, each: Scenario) -> None:
        peers = self._open_peers()
        try:
            each.run(peers, each.version)
        finally:
            peers.close()


class Since:
    """A clock that begins at 0."""

    def __init__(self) -> None:
        self._begin = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._begin

    def wait_until(self, seconds: float) -> None:
        """Let time pass up to this second, where it is the passing of time that is tested."""
        time.sleep(max(0.0, seconds - self.seconds))
