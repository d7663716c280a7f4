"""A real gateway, killed at random moments: what it acknowledged is there afterwards."""

from gateway.cli.crashtest.rounds import Rounds
from tests.crash.conftest import LONG, MakeGateway

ROUNDS = LONG or 5


async def test_nothing_acknowledged_is_lost_by_kills(make_gateway: MakeGateway, seed: int) -> None:
    rounds = Rounds(make_gateway(), seed)
    await rounds.run(ROUNDS)
    assert rounds.findings == []
    assert rounds.figures.kills >= ROUNDS
    assert sum(len(publisher.latencies) for publisher in rounds.publishers) > 10 * ROUNDS


async def test_the_comparison_finds_what_a_gateway_loses_that_does_not_wait_for_the_disk(
    make_gateway: MakeGateway, seed: int
) -> None:
    gateway = make_gateway(arguments=["--durability", "memory"])
    rounds = Rounds(gateway, seed, sessions=False)
    await rounds.run(40)  # it ends with the first finding
    assert any("acknowledged messages" in finding for finding in rounds.findings)
