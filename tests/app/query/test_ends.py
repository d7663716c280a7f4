from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from gateway.app.parts import Run
from gateway.app.query.ends import FLAPPING_SECONDS, MAXIMUM_CLIENTS, REMEMBERED, Ends
from gateway.broker.notices import TAKEN_OVER, ConnectionEnd
from gateway.config.load import bare
from tests.support.clocks import ManualClock


def end(client_id: str, reason: str = "DISCONNECT") -> ConnectionEnd:
    return ConnectionEnd(client_id, None, "192.0.2.7:1", 1.0, reason)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def ends(tmp_path: Path, clock: ManualClock) -> Ends:
    run = Run(bare(1883), tmp_path, AsyncExitStack())
    run.clock = clock
    return Ends(run)


def test_the_last_ends_of_the_last_clients_are_remembered(ends: Ends) -> None:
    for number in range(REMEMBERED + 2):
        ends.add(end("c", f"reason {number}"))
    assert [each["reason"] for each in ends.of("c")] == [
        f"reason {number}" for number in range(REMEMBERED + 1, 1, -1)
    ]
    for number in range(MAXIMUM_CLIENTS):
        ends.add(end(f"other-{number}"))
    assert ends.of("c") == []
    assert ends.last("c") is None
    assert ends.last("other-0") is not None


def test_a_client_flaps_while_its_connections_end_soon(ends: Ends, clock: ManualClock) -> None:
    for number in range(REMEMBERED):
        assert not ends.is_flapping("c", clock.monotonic()), number
        ends.add(end("c"))
    assert ends.is_flapping("c", clock.monotonic())
    clock.step(FLAPPING_SECONDS + 1)
    assert not ends.is_flapping("c", clock.monotonic())


def test_an_identifier_is_shared_while_take_overs_follow_each_other(
    ends: Ends, clock: ManualClock
) -> None:
    assert not ends.is_shared("c", clock.monotonic())
    for _ in range(3):
        ends.add(end("c", TAKEN_OVER))
    assert ends.is_shared("c", clock.monotonic())
    clock.step(61)
    assert not ends.is_shared("c", clock.monotonic())
