"""Clients of a listener with a mount point, from their bytes to the broker's topics."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.access.access import AccessPolicy
from gateway.broker.access import apply
from gateway.broker.connecting.connection_info import Anonymous, Authenticator, Credentials
from gateway.broker.instant import Instant
from gateway.mqtt.codec.packet_codec import decode, encode
from gateway.mqtt.framing import Framer
from gateway.mqtt.packets import (
    MQTT_3_1,
    MQTT_3_1_1,
    MQTT_5,
    ConnAck,
    Connect,
    Packet,
    PingReq,
    PubAck,
    Publish,
    PubRel,
    SubAck,
    Subscribe,
    SubscriptionRequest,
    UnsubAck,
    Unsubscribe,
    Will,
)
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.pieces import complete
from gateway.server.listening.listener import Listener
from gateway.server.mounted import Mount
from gateway.server.tls.context import server_context
from gateway.settings.listener import ListenerSettings
from tests.support.frames import next_frame
from tests.support.processes.certificates import Authority, Pair
from tests.support.processes.server import HOST, Server
from tests.support.raw_client import RawClient
from tests.support.table import table
from tests.support.websockets import frame, request

VERSIONS = [MQTT_3_1, MQTT_3_1_1, MQTT_5]
LARGEST = 1 << 20
BINARY = 2
NAME = "a/topic/with/a/name/that/an/alias/shortens"
TOPICS = [
    ("a", "s/a"),
    ("a/b", "s/a/b"),
    ("/", "s//"),
    ("s/a", "s/s/a"),
    ("$SYS/broker/uptime", "s/$SYS/broker/uptime"),
    ("$CONTROL/tidegate/uplink", "s/$CONTROL/tidegate/uplink"),
    ("$CONTROL/tidegate/channel/jobs/touch", "$CONTROL/tidegate/channel/jobs/touch"),
    ("$CONTROL/tidegate/channel/jobs/pause", "s/$CONTROL/tidegate/channel/jobs/pause"),
    ("$share/g/a", "s/$share/g/a"),
    ("$delay/10/a/b", "$delay/10/s/a/b"),
    ("$delay/10/$SYS/a", "$delay/10/s/$SYS/a"),
    ("$delay/10", "$delay/10"),
    ("$delay/10/", "$delay/10/"),
    ("$delay", "s/$delay"),
    ("ä€𝄞", "s/ä€𝄞"),
    ("x" * 127, "s/" + "x" * 127),
    ("x" * 65_533, "s/" + "x" * 65_533),
    ("x" * 65_534, "x" * 65_534),
]
FILTERS = [
    ("#", "s/#"),
    ("+/b", "s/+/b"),
    ("$SYS/#", "s/$SYS/#"),
    ("$share/g/#", "$share/g/s/#"),
    ("$share/g/a/+", "$share/g/s/a/+"),
    ("$share/s/a", "$share/s/s/a"),
    ("$queue/jobs", "$queue/jobs"),
    ("$queue/jobs/a/#", "$queue/jobs/s/a/#"),
    ("$delay/1/a", "s/$delay/1/a"),
    ("x" * 65_534, "x" * 65_534),
]


def _mount(version: int = MQTT_5, prefix: str = "s/") -> Mount:
    return Mount(prefix.encode(), version, LARGEST)


def _packets(data: bytes, version: int) -> list[Packet]:
    framer = Framer(1 << 28)
    framer.feed(data)
    packets = []
    while (found := next_frame(framer)) is not None:
        packets.append(decode(*found, version))
    return packets


@table("version", VERSIONS)
@table("qos", [0, 1, 2])
@table(("topic", "whole"), TOPICS)
def test_topics_of_messages(version: int, qos: int, topic: str, whole: str) -> None:
    message = Publish(topic, b"payload", qos, packet_id=7 if qos else 0)
    data = encode(message, version)
    expected = encode(replace(message, topic=whole), version)
    assert _mount(version).add(data) == expected
    if whole.startswith("s/"):
        assert _mount(version).remove(expected) == data
    else:
        assert _mount(version).remove(expected) == expected


@table("version", VERSIONS)
@table(("topic_filter", "whole"), FILTERS)
def test_topic_filters(version: int, topic_filter: str, whole: str) -> None:
    properties = Properties(user_properties=(("a", "b"),)) if version == MQTT_5 else Properties()
    requests = [SubscriptionRequest(each, 1) for each in ("q", topic_filter)]
    wholes = [SubscriptionRequest(each, 1) for each in ("s/q", whole)]
    came = _mount(version).add(encode(Subscribe(3, requests, properties), version))
    assert came == encode(Subscribe(3, wholes, properties), version)
    came = _mount(version).add(encode(Unsubscribe(3, ["q", topic_filter], properties), version))
    assert came == encode(Unsubscribe(3, ["s/q", whole], properties), version)


@pytest.mark.parametrize(
    ("topic_filter", "whole"),
    [
        ("a/+", "baa/+"),
        ("#", "#"),
        ("+/a", "+/a"),
        ("$share/ba/#", "$share/ba/#"),
        ("$share/ba/x/#", "$share/ba/bax/#"),
    ],
)
def test_a_mount_point_inside_a_level_makes_no_level_of_a_wildcard(
    topic_filter: str, whole: str
) -> None:
    data = encode(Subscribe(3, [SubscriptionRequest(topic_filter)]), MQTT_5)
    (packet,) = _packets(_mount(prefix="ba").add(data), MQTT_5)
    assert isinstance(packet, Subscribe)
    assert [each.topic_filter for each in packet.requests] == [whole]


STREAM = b"".join(
    encode(packet, MQTT_5)
    for packet in (
        PingReq(),
        Publish("a/b", b"x" * 300, 1, packet_id=1),
        Publish("$delay/5/q", b"", 2, packet_id=2),
        Publish("", b"aliased", properties=Properties(topic_alias=3)),
        Publish("c", b"aliased", properties=Properties(topic_alias=3)),
        Subscribe(4, [SubscriptionRequest("$share/g/#", 2), SubscriptionRequest("+", 1)]),
        Unsubscribe(5, ["+"]),
        PubRel(2),
        PubAck(9),
    )
)


def test_a_stream_means_the_same_in_any_pieces() -> None:
    whole = _mount().add(STREAM)
    assert len(whole) == len(STREAM) + 2 * 6
    for size in range(1, 12):
        mount = _mount()
        pieces = [mount.add(STREAM[at : at + size]) for at in range(0, len(STREAM), size)]
        assert b"".join(pieces) == whole, size
        assert mount.held == 0
    sent = encode(Publish("s/a/b", b"1"), MQTT_5) + encode(PubAck(4), MQTT_5)
    sent += encode(Publish("", b"2", properties=Properties(topic_alias=1)), MQTT_5)
    assert _packets(bytes(_mount().remove(bytearray(sent))), MQTT_5) == [
        Publish("a/b", b"1"),
        PubAck(4),
        Publish("", b"2", properties=Properties(topic_alias=1)),
    ]


def test_a_long_payload_passes_as_it_comes() -> None:
    mount = _mount()
    data = encode(Publish("a", bytes(500_000)), MQTT_5)
    came = len(mount.add(data[:10])) + len(mount.add(data[10:250_000]))
    assert (came, mount.held) == (250_002, 0)


@pytest.mark.parametrize(
    "data",
    [
        b"\x30\x00",
        b"\x30\x01a",
        b"\x30\x03\x00\x09a",
        b"\x32\xff\xff\xff\xff\xff",
        b"\x30\xff\xff\xff\x7f\x00\x01a",
        b"\x82\x05\x00\x01\x00\x00\x09",
        b"\x82\x06\x00\x01\x00\x00\x01a",
        b"\x82\x05\x00\x01\xff\xff\xff",
        b"\xa2\x04\x00\x01\x00\x00",
        b"\x82\xff\xff\xff\x7f\x00\x01",
        b"\x00\x00",
    ],
)
def test_what_is_wrong_stays_wrong(data: bytes) -> None:
    assert _mount().add(data) == data


ANYTHING = st.one_of(
    st.binary(max_size=20),
    st.sampled_from([STREAM, encode(PingReq(), MQTT_5), encode(Publish("a"), MQTT_5)]),
    st.text(max_size=8).map(lambda topic: b"\x30" + _string(topic)),
    st.text(max_size=8).map(lambda topic: b"\x82" + _string(topic, b"\0\1\0", b"\0")),
)


def _string(text: str, before: bytes = b"", behind: bytes = b"") -> bytes:
    """Return the rest of a packet that has this string, whatever it is."""
    data = text.encode()
    body = before + len(data).to_bytes(2, "big") + data + behind
    return len(body).to_bytes(1, "big") + body


@given(st.lists(ANYTHING, max_size=6).map(b"".join), st.integers(1, 40), st.sampled_from(VERSIONS))
def test_any_bytes_mean_the_same_in_any_pieces(data: bytes, size: int, version: int) -> None:
    mount = _mount(version)
    came = b"".join(mount.add(data[at : at + size]) for at in range(0, len(data), size))
    assert came == _mount(version).add(data)


# A real listener.


@asynccontextmanager
async def _listener(
    server: Server,
    mount_point: str = "s/",
    authenticator: Authenticator | None = None,
    tls: ssl.SSLContext | None = None,
    **keys: Any,
) -> AsyncIterator[Listener]:
    policy = AccessPolicy(mount_point=mount_point)
    settings = ListenerSettings(HOST, 0, mount_point=mount_point, **keys)
    listener = Listener(settings, authenticator or Anonymous(), server.turn, tls=tls, access=policy)
    complete(apply(server.broker, [policy, AccessPolicy()], 0.0))
    await listener.bind()
    await listener.serve()
    yield listener
    await listener.close()


async def _client(
    listener: Listener, client_id: str = "m", version: int = MQTT_5, **fields: object
) -> RawClient:
    client = await RawClient.open(listener.port, version)
    await client.connect_as(client_id, **fields)
    return client


async def _end(client: RawClient) -> list[Packet]:
    """Return the last packets of a connection that the gateway ends."""
    packets = await client.until_closed()
    await client.close()
    return packets


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("qos", [0, 1, 2])
async def test_a_client_sees_its_part_and_others_see_where_it_is(
    server: Server, version: int, qos: int
) -> None:
    async with _listener(server) as listener:
        inside = await _client(listener, version=version)
        outside = await server.clients.connect("outside")
        assert await inside.subscribe("#", qos) == qos
        assert await outside.subscribe("#", qos) == qos
        await outside.send(Publish("other", b""), Publish("s", b""), Publish("s/", b""))
        assert [(await outside.take(Publish)).topic for _ in range(3)] == ["other", "s", "s/"]
        await outside.send(Publish("s/x", b"in"))
        assert (await inside.take(Publish)).topic == "x"
        assert (await outside.take(Publish)).topic == "s/x"
        await inside.send(Publish("y", b"out", qos, packet_id=5 if qos else 0))
        message = await outside.take(Publish)
        assert (message.topic, message.payload, message.qos) == ("s/y", b"out", qos)
        came = [await inside.receive() for _ in range(2 if qos else 1)]
        assert [each.topic for each in came if isinstance(each, Publish)] == ["y"]
        await inside.send(Unsubscribe(6, ["#"]))
        while not isinstance(packet := await inside.receive(), UnsubAck):
            assert qos == 2, packet
        assert ReasonCode.SUCCESS in (packet.reason_codes or [ReasonCode.SUCCESS])
        await inside.close()


async def test_retained_shared_delayed_and_aliased_topics(server: Server) -> None:
    async with _listener(server) as listener:
        inside = await _client(listener, properties=Properties(topic_alias_maximum=4))
        outside = await server.clients.connect("outside")
        await outside.send(Publish("s/kept", b"1", retain=True), Publish("s", b"2", retain=True))
        assert await outside.waiting() == []
        assert await inside.subscribe("#") == 0
        assert (await inside.take(Publish)).topic == "kept"
        assert await inside.subscribe("$share/g/jobs/#") == 0
        assert await outside.subscribe("#") == 0
        assert {(await outside.take(Publish)).topic for _ in range(2)} == {"s/kept", "s"}
        await outside.send(Publish("s/jobs/1", b""))
        jobs = [await inside.take(Publish) for _ in range(2)]  # of both subscriptions
        assert [each.topic or "jobs/1" for each in jobs] == ["jobs/1"] * 2
        await inside.send(Publish(NAME, b"", properties=Properties(topic_alias=1)))
        for _ in range(4):
            await inside.send(Publish("", b"", properties=Properties(topic_alias=1)))
        names = [(await outside.take(Publish)).topic for _ in range(6)]
        assert names == ["s/jobs/1", *[f"s/{NAME}"] * 5]
        known: dict[int | None, str] = {}
        for _ in range(5):
            message = await inside.take(Publish)
            alias = message.properties.topic_alias
            assert (message.topic or known[alias]) == NAME
            known[alias] = NAME
        assert message.topic == ""  # named once, and then by its alias
        await inside.send(Publish("$delay/1/later", b""))
        assert (await outside.take(Publish)).topic == "s/later"
        await inside.close()


async def test_the_will_is_inside(server: Server) -> None:
    async with _listener(server) as listener:
        outside = await server.clients.connect("outside")
        await outside.subscribe("#")
        inside = await _client(listener, will=Will("gone", b"bye", 1, retain=True))
        await inside.close()
        message = await outside.take(Publish)
        assert (message.topic, message.payload) == ("s/gone", b"bye")


async def test_rights_end_at_the_mount_point(server: Server) -> None:
    """A session from elsewhere, subscriptions and messages in flight bring nothing of outside."""
    lasting: dict[str, Any] = {
        "properties": Properties(session_expiry_interval=600),
        "clean_start": False,
    }
    async with _listener(server) as listener:
        outside = await server.clients.connect("outside")
        mine = await server.clients.connect("m", **lasting)
        assert await mine.subscribe("other", 1) == 1
        await outside.send(Publish("other", b"secret", 1, packet_id=1))
        assert (await mine.take(Publish)).payload == b"secret"
        await mine.close()
        inside = await _client(listener, **lasting)
        assert not inside.connack.session_present  # it was of another part of the topics
        assert await inside.waiting() == []
        assert await inside.subscribe("other", 1) == 1
        await inside.close()
        again = await _client(listener, **lasting)
        assert again.connack.session_present
        await outside.send(Publish("s/other", b"mine", 1, packet_id=2))
        assert (await again.take(Publish)).topic == "other"
        await again.close()
        mine = await server.clients.connect("m", **lasting)
        assert not mine.connack.session_present  # its rights ended at the mount point
        assert await mine.subscribe("other", 1) == 1


async def test_everything_may_come_in_one_read(server: Server) -> None:
    async with _listener(server) as listener:
        client = await RawClient.open(listener.port)
        await client.send(
            Connect("m"),
            Subscribe(1, [SubscriptionRequest("#", 1)]),
            Publish("x", b"1", 1, packet_id=2),
        )
        came = [await client.receive() for _ in range(4)]
        assert isinstance(came[0], ConnAck)
        assert isinstance(came[1], SubAck)
        assert [each.topic for each in came if isinstance(each, Publish)] == ["x"]
        await client.close()


class Slow:
    """Says yes later."""

    proves = True

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.decide: Callable[[bool | None], None] = lambda _: None

    def check(
        self,
        credentials: Credentials,
        instant: Instant,
        decide: Callable[[bool | None, Instant], None],
    ) -> None:
        self.decide = lambda right: decide(right, instant)
        self.asked.set()


async def test_what_follows_a_connect_waits_until_it_is_accepted(server: Server) -> None:
    slow = Slow()
    async with _listener(server, "u/%u/%c/", slow) as listener:
        client = await RawClient.open(listener.port)
        await client.send(
            Connect("m", username="anna", password=b"x"),
            Subscribe(1, [SubscriptionRequest("#", 1)]),
            Publish("x", bytes(100_000), 1, packet_id=2),
        )
        await slow.asked.wait()
        slow.decide(True)
        came = [await client.receive() for _ in range(4)]
        assert [each.topic for each in came if isinstance(each, Publish)] == ["x"]
        (session,) = server.broker.sessions.values()
        assert session.granted.prefix == "u/anna/m/"
        await client.close()


@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
async def test_names_that_are_no_level_are_refused(
    server: Server, version: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with _listener(server, "dev/%c/") as listener:
        for client_id in ("a/b", "+", "a#", "/"):
            client = await RawClient.open(listener.port, version)
            await client.send(Connect(client_id, version))
            (answer,) = await _end(client)
            assert isinstance(answer, ConnAck)
            assert answer.reason_code == ReasonCode.CLIENT_IDENTIFIER_NOT_VALID
        assigned = await _client(listener, "", version)
        (session,) = server.broker.sessions.values()
        assert session.granted.prefix == "dev/assigned/"
        await assigned.close()
    assert "the mount point 'dev/%c/' needs a name that is not empty and has no /" in caplog.text


@pytest.mark.parametrize(
    "data", [b"GET / HTTP/1.1\r\n\r\n", b"\x30\x04\x00\x01ab", b"\x10\xff\xff\xff\xff\xff"]
)
async def test_what_is_no_client_is_closed(server: Server, data: bytes) -> None:
    async with _listener(server) as listener:
        client = await RawClient.open(listener.port)
        await client.send_bytes(data)
        assert not any(isinstance(each, Publish) for each in await _end(client))


async def test_the_size_of_packets_is_that_of_the_client(server: Server) -> None:
    async with _listener(server, maximum_packet_size=2_000) as listener:
        client = await _client(listener)
        assert client.connack.properties.maximum_packet_size == 2_000
        await client.subscribe("#")
        largest = Publish("x", bytes(2_000 - 7))
        assert len(encode(largest, MQTT_5)) == 2_000
        await client.send(largest)
        assert len((await client.take(Publish)).payload) == 1_993
        await client.send(Publish("x", bytes(2_000)))
        last = await _end(client)
        assert ReasonCode.PACKET_TOO_LARGE in [getattr(each, "reason_code", 0) for each in last]


async def test_a_websocket_with_tls_and_a_proxy(
    server: Server, authority: Authority, server_pair: Pair
) -> None:
    """All layers of a listener at once, and a mount point on top of them."""
    from ipaddress import ip_network

    pair: dict[str, Any] = {"tls_certificate": server_pair.certificate, "tls_key": server_pair.key}
    tls = server_context(ListenerSettings(HOST, 0, **pair), "file", 0)
    trusting = ssl.create_default_context(cafile=authority.ca_file)
    networks = (ip_network("127.0.0.0/8"),)
    keys: dict[str, Any] = {"websocket": True, "proxy_protocol": True, **pair}
    keys["proxy_protocol_from"] = networks
    async with _listener(server, tls=tls, **keys) as listener:
        reader, writer = await asyncio.open_connection(HOST, listener.port)
        writer.write(b"PROXY TCP4 203.0.113.7 192.0.2.1 40000 1883\r\n")
        await writer.start_tls(trusting, server_hostname="localhost")
        writer.write(request())
        assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
        writer.write(frame(BINARY, encode(Connect("m"), MQTT_5)))
        outside = await server.clients.connect("outside")
        await outside.subscribe("#")
        writer.write(frame(BINARY, encode(Publish("x", b"1"), MQTT_5)))
        assert (await outside.take(Publish)).topic == "s/x"
        assert server.broker.clients["m"].peer == "203.0.113.7:40000"
        writer.close()
