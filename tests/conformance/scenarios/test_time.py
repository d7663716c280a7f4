"""What happens after some time: keep alive, expiry, delayed wills, in scenarios side by side.

Every scenario says in whole seconds what the specification says; the broker may be later on a
busy machine, never earlier.
"""

from collections.abc import Callable, Iterator

import pytest

from tests.conformance.scenarios import messages as time_of_messages
from tests.conformance.scenarios import sessions as time_of_sessions
from tests.conformance.scenarios.scenarios import SCENARIOS, Running, Scenario, params
from tests.conformance.support.peer import Peers
from tests.support.processes.gateway_process import GatewayProcess

DEFINED_IN = (time_of_messages, time_of_sessions)
"""Where the scenarios are."""


@pytest.fixture(scope="module")
def running(gateway: GatewayProcess, name: Callable[[], str]) -> Iterator[Running]:
    """All scenarios, begun with the first test of this file."""
    begun = Running(lambda: Peers(gateway.port, name))
    yield begun
    begun.close()


@pytest.mark.parametrize("each", params(SCENARIOS))
def test_in_time(peers: Peers, running: Running, each: Scenario) -> None:
    running.result(each)
