"""A real gateway, killed at random moments: what it acknowledged is there afterwards."""

import sqlite3
from contextlib import closing
from pathlib import Path

from crashtest.rounds import Rounds
from tests.crash.conftest import LONG, MakeGateway

ROUNDS = LONG or 3


def left_over(database: Path) -> dict[str, int]:
    """Return how many rows there are of what is done with once it was acknowledged."""
    with closing(sqlite3.connect(database)) as connection:
        return {
            table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("delivery", "incoming")
        }


async def test_nothing_acknowledged_is_lost_by_kills(make_gateway: MakeGateway, seed: int) -> None:
    rounds = Rounds(make_gateway(), seed)
    await rounds.run(ROUNDS)
    assert rounds.findings == []
    assert rounds.figures.kills >= ROUNDS
    assert left_over(rounds.gateway.data / "tidegate.db") == {"delivery": 0, "incoming": 0}
    assert sum(len(publisher.latencies) for publisher in rounds.publishers) > 10 * ROUNDS


async def test_the_comparison_finds_what_a_gateway_loses_that_does_not_wait_for_the_disk(
    make_gateway: MakeGateway, seed: int
) -> None:
    gateway = make_gateway(arguments=["--durability", "memory"])
    rounds = Rounds(gateway, seed, sessions=False)
    await rounds.run(40)  # it ends with the first finding
    assert any("acknowledged messages" in finding for finding in rounds.findings)
