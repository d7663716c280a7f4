"""Streams that are almost MQTT, sent to a running gateway: others don't notice."""

from hypothesis import HealthCheck, given, settings

from tests.conformance.support import wire
from tests.conformance.support.peer import Peer, Peers
from tests.fuzz.streams import BEGINNINGS, STREAMS


def hear_out(peer: Peer) -> None:
    """Take whatever comes until the connection ends, or the gateway waits for more."""
    peer.socket.settimeout(0.02)
    try:
        while peer.receive():
            pass
    except TimeoutError:
        return  # it waits for the rest of a packet
    finally:
        peer.close()


def check_others(healthy: Peer, number: int) -> None:
    payload = b"%d" % number
    healthy.send(wire.publish(healthy.version, healthy.client_id, payload, 1, 1))
    heard = {healthy.receive(), healthy.receive()}
    assert heard == {
        wire.acknowledgement(wire.PUBACK, 1),
        wire.publish(healthy.version, healthy.client_id, payload),
    }


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(beginning=BEGINNINGS, stream=STREAMS)
def test_streams_that_are_almost_mqtt(
    peers: Peers, healthy: Peer, beginning: bytes, stream: bytes
) -> None:
    peer = peers.open()
    peer.send(beginning + stream)
    hear_out(peer)
    check_others(healthy, len(stream))
