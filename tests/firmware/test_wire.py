"""A node's Wi-Fi link: whatever a broker does, the node samples on, and loses nothing."""

import ssl
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.support.fleet.hostile_broker import TRICKS, HostileBroker
from tests.support.nodes.micropython import CLIENT, FIRMWARE, environment
from tests.support.processes.certificates import Authority
from tests.support.waiting import until

SCRIPT = Path(__file__).parent / "scripts" / "wifi.py"
NODES = 4
SPEED = 20
"""Times that the node's clock is faster than ours."""

GROWTH_MAX = 24 * 1024
"""Bytes of memory that may be taken at one time more than at another, for what waits to be sent and
what is heard. Words have 64 bits here."""

pytestmark = [
    pytest.mark.micropython,
    pytest.mark.skipif(
        not CLIENT.exists(), reason="needs umqtt.simple: sh tests/support/get_umqtt.sh"
    ),
]


@pytest.fixture
def brokers() -> Iterator[list[HostileBroker]]:
    made: list[HostileBroker] = []
    yield made
    for each in made:
        each.close()


def start(micropython: str, port: int, authority: str = "") -> subprocess.Popen[str]:
    arguments = [str(port), str(SPEED), *([authority] if authority else [])]
    modules = f"{FIRMWARE}:{CLIENT.parents[1]}"
    return subprocess.Popen(
        [micropython, str(SCRIPT), *arguments],
        env={**environment(FIRMWARE), "MICROPYPATH": modules},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_hostile_broker_does_not_keep_a_node_from_sampling(
    micropython: str, brokers: list[HostileBroker]
) -> None:
    """Each of several nodes meets a part of the tricks: most of the time they wait."""
    brokers += [HostileBroker(TRICKS[first::NODES]) for first in range(NODES)]
    nodes = [start(micropython, broker.port) for broker in brokers]
    for broker, node in zip(brokers, nodes, strict=True):
        until(partial(met_all, broker), "it met every trick", partial(reported, node))
        until(partial(caught_up, broker), "all that waited is heard", partial(reported, node))
    waited = 0
    for broker, node in zip(brokers, nodes, strict=True):
        node.terminate()
        node.communicate(timeout=60)
        frames = {each.sequence: each for each in broker.frames}
        numbers = sorted(frames)
        # A frame that a trick took without an answer comes again: none is missing, or was dropped.
        assert numbers == list(range(1, len(numbers) + 1))
        assert broker.frames[-1].dropped == 0
        values = [frames[number].readings for number in numbers]
        waited += int(values[-1][0].value)
        memory = [int(each.value) for _, each in values]
        assert max(memory) - min(memory) < GROWTH_MAX
    assert waited > 5, "samples while the nodes wait for their brokers"


def met_all(broker: HostileBroker) -> bool:
    return not broker.left


def caught_up(broker: HostileBroker) -> bool:
    """Say whether what comes by now was sampled just before."""
    return bool(broker.frames) and broker.frames[-1].age < 1500


def reported(node: subprocess.Popen[str]) -> str:
    """Return how the node ended, if it did."""
    return "it runs" if node.poll() is None else str(node.communicate())


def test_a_broker_with_tls_proves_itself(
    micropython: str, brokers: list[HostileBroker], tmp_path: Path
) -> None:
    """By the certificate of the settings; another broker's is refused."""
    (tmp_path / "others").mkdir()
    authority, other = Authority(tmp_path), Authority(tmp_path / "others")
    brokers += [HostileBroker((), context(each)) for each in (authority, other)]
    file = tmp_path / "der"
    file.write_bytes(b64encode(ssl.PEM_cert_to_DER_cert(Path(authority.ca_file).read_text())))
    nodes = [start(micropython, each.port, str(file)) for each in brokers]
    until(lambda: len(brokers[0].frames) > 20, "the node is heard", lambda: reported(nodes[0]))
    until(lambda: len(brokers[1].failures) > 1, "it tries again", lambda: reported(nodes[1]))
    assert [each.sequence for each in brokers[0].frames[:3]] == [1, 2, 3]
    assert brokers[1].frames == []
    for node in nodes:
        node.terminate()
        node.communicate(timeout=60)


def context(authority: Authority) -> ssl.SSLContext:
    """Return a broker's context with a certificate of this authority."""
    pair = authority.issue("localhost")
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(pair.certificate, pair.key)
    return made
