"""One gateway for all of the folder's tests, and clients that say exact bytes."""

import itertools
from collections.abc import Callable, Iterator

import pytest

from tests.conformance.support import limited_gateway, wire
from tests.conformance.support.kept import Restored
from tests.conformance.support.peer import Peer, Peers
from tests.support.processes.gateway_process import GatewayProcess

NUMBERS = itertools.count()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--statements",
        action="store_true",
        help="list the specifications' statements and which of them the tests cover",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "keeps(*names): the normative statements a test is for")
    whole_list = config.getoption("--statements", default=False)
    config.pluginmanager.register(Restored(whole_list=bool(whole_list)), "kept-statements")


@pytest.fixture(scope="session")
def name() -> Callable[[], str]:
    """Return what gives names that no other client or topic of the run has."""
    return lambda: f"n{next(NUMBERS)}"


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """A gateway as `tidegate run` starts it, without a configuration."""
    process = GatewayProcess(tmp_path_factory.mktemp("gateway")).start(anew=True)
    yield process
    assert process.stop() == 0
    for trouble in ("unexpected error", "Traceback", " ERROR "):
        assert trouble not in process.log()


@pytest.fixture(scope="session")
def ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[limited_gateway.Ports]:
    """The listeners of another gateway, with limits, with users and with WebSocket."""
    process, ports = limited_gateway.start(tmp_path_factory.mktemp("limited"))
    yield ports
    process.stop()
    assert "unexpected error" not in process.log()


@pytest.fixture(scope="session")
def healthy(gateway: GatewayProcess, name: Callable[[], str]) -> Iterator[Peer]:
    """A client that is connected all the time, subscribed to a topic of its own identifier."""
    peers = Peers(gateway.port, name)
    client = peers.connect()
    yield client.subscribe((client.client_id, 0))
    peers.close()


@pytest.fixture
def peers(gateway: GatewayProcess, healthy: Peer, name: Callable[[], str]) -> Iterator[Peers]:
    """Clients of a test; afterwards another one still gets its echo."""
    opened = Peers(gateway.port, name)
    yield opened
    opened.close()
    echo = name().encode()
    healthy.send(wire.publish(healthy.version, healthy.client_id, echo))
    healthy.expect_publish(healthy.client_id, echo)
    healthy.expect_nothing()


@pytest.fixture(params=[wire.MQTT_3_1_1, wire.MQTT_5], ids=["v3.1.1", "v5"])
def version(request: pytest.FixtureRequest) -> int:
    """The protocol version of a test that both are held to."""
    number: int = request.param
    return number


@pytest.fixture
def topic(peers: Peers) -> str:
    """A topic that no other test has."""
    return peers.topic
