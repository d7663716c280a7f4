"""Scenarios of keep alive, of sessions that end and of wills that wait."""

from tests.conformance.scenarios.scenarios import Since, scenario
from tests.conformance.support import wire
from tests.conformance.support.codes import KEEP_ALIVE_TIMEOUT
from tests.conformance.support.peer import Peer, Peers
from tests.conformance.support.wire import (
    PUBACK,
    Will,
    acknowledgement,
    message_expiry,
    session_expiry,
    will_delay,
)

SOON = 0.1
"""Seconds by which a clock may be read late or early."""
LATE = 60.0
"""Seconds by which the gateway may be late on a busy machine."""
STILL = 6
"""Keep alive in seconds of who speaks: a machine may stand still for 4 between packets."""


def watch(peers: Peers) -> Peer:
    return peers.connect().subscribe((f"{peers.topic}/#", 2))


@scenario("5:3.1.2-22", "3.1.1:3.1.2-24", "5:3.2.2-22", "5:3.14.4-2")
def silence_of_one_and_a_half_keep_alive_intervals(peers: Peers, version: int) -> None:
    watcher = watch(peers)
    since = Since()
    peer = peers.connect(version, keep_alive=1, will=Will(peers.topic))
    peer.expect_error(KEEP_ALIVE_TIMEOUT)
    assert 1.5 - SOON < since.seconds < 1.5 + LATE
    watcher.expect_publish(peers.topic, b"gone")


@scenario("5:3.1.2-22", "3.1.1:3.1.2-24")
def every_packet_is_a_sign_of_life(peers: Peers, version: int) -> None:
    peer = peers.connect(version, keep_alive=STILL)
    since = Since()
    for step, packet in enumerate(
        (
            wire.publish(version, peers.topic),
            wire.PINGREQ,
            wire.subscribe(version, 1, ("t/none", 0)),
            acknowledgement(PUBACK, 7),
        ),
        1,
    ):
        since.wait_until(4.6 * step)  # twice that is longer than one and a half intervals
        peer.send(packet)
    peer.expect(wire.PINGRESP, wire.suback(version, 1, 0))
    peer.expect_nothing()


@scenario("5:3.1.2-22", "3.1.1:3.1.2-24")
def what_the_server_sends_is_no_sign_of_life(peers: Peers, version: int) -> None:
    peer = peers.connect(version, keep_alive=STILL).subscribe((peers.topic, 0))
    since, silent = Since(), peers.connect(version, keep_alive=STILL)
    publisher = peers.connect(version)
    for step in range(1, 4):
        since.wait_until(1.2 * step)
        publisher.publish_unanswered(peers.topic, b"%d" % step)
        peer.expect_publish(peers.topic, b"%d" % step)
    silent.expect_error(KEEP_ALIVE_TIMEOUT)
    expect_error_at_once(peer)


@scenario("5:3.1.2-22", "3.1.1:3.1.2-24")
def half_a_packet_is_no_sign_of_life(peers: Peers, version: int) -> None:
    peer = peers.connect(version, keep_alive=STILL)
    since, silent = Since(), peers.connect(version, keep_alive=STILL)
    peer.send(b"\x30\x7f")
    for step in range(1, 4):
        since.wait_until(1.2 * step)
        peer.send(b"\x00")
    silent.expect_error(KEEP_ALIVE_TIMEOUT)
    expect_error_at_once(peer)


def expect_error_at_once(peer: Peer) -> None:
    """See that a connection has ended as soon as one that was silent from its beginning on."""
    peer.socket.settimeout(2)
    peer.expect_error(KEEP_ALIVE_TIMEOUT)


@scenario("5:3.1.2-22", "3.1.1:3.1.2-24")
def without_a_keep_alive_silence_does_not_matter(peers: Peers, version: int) -> None:
    peer = peers.connect(version, keep_alive=0)
    Since().wait_until(3)
    peer.expect_nothing()


@scenario("5:4.1.0-2", "5:3.1.2.11.2")
def a_session_ends_when_its_interval_has_passed(peers: Peers, _version: int) -> None:
    first = peers.connect(properties=session_expiry(1)).subscribe((peers.topic, 1))
    first.close()
    peers.connect().publish(peers.topic, b"x", 1)
    Since().wait_until(1.5)
    again = peers.connect(client_id=first.client_id, clean=False, properties=session_expiry(60))
    assert again.connack.flags == 0
    again.expect_nothing()


@scenario("5:4.1.0-2", "5:3.1.2-23")
def a_session_is_there_before_its_interval_has_passed(peers: Peers, _version: int) -> None:
    first = peers.connect(properties=session_expiry(8))
    Since().wait_until(6.5)  # which does not count while it is connected
    first.close()
    Since().wait_until(2)
    again = peers.connect(client_id=first.client_id, clean=False, properties=session_expiry(60))
    assert again.connack.flags == 1


@scenario("5:4.1.0-2", "5:3.1.2.11.2")
def the_interval_of_disconnect_counts(peers: Peers, _version: int) -> None:
    first = peers.connect(properties=session_expiry(600))
    first.disconnect(0, session_expiry(1))
    Since().wait_until(1.5)
    again = peers.connect(client_id=first.client_id, clean=False)
    assert again.connack.flags == 0


@scenario("5:3.1.2-8", "5:3.1.2-7")
def a_will_waits_for_its_delay(peers: Peers, _version: int) -> None:
    watcher = watch(peers)
    will = Will(peers.topic, properties=will_delay(1))
    peer = peers.connect(properties=session_expiry(600), will=will)
    since = Since()
    peer.close()
    watcher.expect_publish(peers.topic, b"gone")
    assert 1 - SOON < since.seconds < 1 + LATE


@scenario("5:3.1.2-8", "5:4.1.0-2")
def a_will_waits_no_longer_than_its_session(peers: Peers, _version: int) -> None:
    watcher = watch(peers)
    will = Will(peers.topic, properties=will_delay(600))
    peer = peers.connect(properties=session_expiry(1), will=will)
    since = Since()
    peer.close()
    watcher.expect_publish(peers.topic, b"gone")
    assert 1 - SOON < since.seconds < 1 + LATE


@scenario("5:3.1.2-8")
def a_will_waits_no_longer_than_the_interval_of_disconnect(peers: Peers, _version: int) -> None:
    watcher = watch(peers)
    will = Will(peers.topic, properties=will_delay(600))
    peer = peers.connect(properties=session_expiry(600), will=will)
    since = Since()
    peer.disconnect(0x04, session_expiry(1))
    watcher.expect_publish(peers.topic, b"gone")
    assert 1 - SOON < since.seconds < 1 + LATE


@scenario("5:3.1.3-9", "5:3.1.2-10")
def a_new_connection_calls_a_delayed_will_off_for_good(peers: Peers, _version: int) -> None:
    watcher = watch(peers)
    will = Will(peers.topic, properties=will_delay(8))
    peer = peers.connect(properties=session_expiry(600), will=will)
    peer.close()
    again = peers.connect(client_id=peer.client_id, clean=False, properties=session_expiry(600))
    assert again.connack.flags == 1
    Since().wait_until(8.5)
    watcher.expect_nothing()


@scenario("5:3.1.2-8", "5:3.1.2-22")
def a_delay_begins_with_the_end_of_the_connection(peers: Peers, _version: int) -> None:
    watcher = watch(peers)
    will = Will(peers.topic, properties=will_delay(1))
    since = Since()
    peer = peers.connect(properties=session_expiry(600), keep_alive=1, will=will)
    peer.expect_error(KEEP_ALIVE_TIMEOUT)
    watcher.expect_publish(peers.topic, b"gone")
    assert 2.5 - 2 * SOON < since.seconds < 2.5 + LATE


@scenario("5:3.3.2-6", "5:3.1.2-9")
def the_expiry_interval_of_a_will_begins_with_its_publication(peers: Peers, _version: int) -> None:
    watcher = watch(peers)
    will = Will(peers.topic, properties=will_delay(2) + message_expiry(2))
    peers.connect(properties=session_expiry(600), will=will).close()
    properties = [(wire.MESSAGE_EXPIRY_INTERVAL, 2)]
    watcher.expect_publish(peers.topic, b"gone", properties=properties)
