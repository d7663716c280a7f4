"""What is for all is shared: whoever fills it is refused, and whoever comes next is not."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gateway.broker.connecting.connection_info import PLAIN, ConnectionInfo
from gateway.broker.shares import GONE, UNIX_SOCKET, Share, holder_of, network
from gateway.mqtt.codec.packet_codec import encode
from gateway.mqtt.packets import (
    MQTT_3_1_1,
    MQTT_5,
    ConnAck,
    Connect,
    Disconnect,
    PubAck,
    Publish,
    PubRec,
    PubRel,
    SubAck,
    Subscribe,
    SubscriptionRequest,
    Will,
)
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.settings.broker import NEVER, BrokerSettings, Unconfigured
from tests.support.broker.broker_harness import Harness
from tests.support.broker.durable_broker import DurableHarness
from tests.support.broker.inline import Inline
from tests.support.broker.memory_client import MemoryClient
from tests.support.table import table

QUOTA = ReasonCode.QUOTA_EXCEEDED
DAY = 86_400
ANONYMOUS = "clients at 192.0.2.7 without a user name"


def of(user: str) -> ConnectionInfo:
    """Return what a listener says of a connection whose certificate names a user."""
    return ConnectionInfo(username=user)


# --- one share ------------------------------------------------------------------------------


def test_a_holder_may_have_half_of_what_others_leave() -> None:
    share = Share("things", "things", lambda: 100, 50)
    for holder, expected in (("a", 50), ("b", 25), ("c", 12)):
        count = 0
        while not share.refusal(f"{holder}{count}", holder):
            share.add(f"{holder}{count}", holder)
            count += 1
        assert count == expected
    assert share.refusal("a50", "a") == "50 things of a; the limit is 31"
    assert share.largest(2) == [("a", 50), ("b", 25)]
    for number in range(50):
        share.remove(f"a{number}")
    assert share.total == 37
    assert not share.refusal("c13", "c")


def test_one_client_leaves_something_to_others_of_its_holder() -> None:
    share = Share("things", "things", lambda: 100, 50)
    while not share.refusal("c", "a"):
        share.add("c", "a")
    assert share.refusal("c", "a") == "40 things of client 'c'; the limit is 40"
    assert not share.refusal(("d", None), "a", 8)
    assert share.refusal(("d", None), "a", 9) == "0 things of client 'd'; the limit is 8"
    assert share.largest_clients(5) == [("c", 40)]


def test_clients_without_a_user_name_leave_something_to_users_from_any_addresses() -> None:
    share = Share("things", "things", lambda: 100, 50)
    for number in range(100):
        holder = f"clients at 192.0.2.{number} without a user name"
        while not share.refusal(holder, holder):
            share.add(holder, holder)
    assert (share.total, share.unnamed) == (90, 90)
    said = "90 things of all clients without a user name; the limit is 90"
    assert share.refusal("c", UNIX_SOCKET) == said
    assert not share.refusal("c", "user 'u'", 4)
    share.move("clients at 192.0.2.0 without a user name", "user 'u'")
    assert share.total - share.unnamed == 40


def test_who_moves_takes_along_what_it_has() -> None:
    share = Share("things", "things", lambda: 10, 50)
    share.add("c", "a", 3)
    share.move("c", "b")
    share.move("c", "b")
    share.move("nobody", "b")
    assert (share.holder("c"), share.holder("nobody")) == ("b", None)
    assert share.largest(9) == [("b", 3)]
    share.add("c", "another", 2)  # as long as it has something, it is whose that is
    assert share.largest(9) == [("b", 5)]
    share.remove("c", 5)
    assert (share.total, share.largest(9), share.largest_clients(9)) == (0, [], [])


def test_with_a_hundred_percent_nothing_is_refused() -> None:
    share = Share("things", "things", lambda: 1, 100)
    share.add("c", "a", 5)
    assert not share.refusal("c", "a", 5)


@table(
    ("address", "expected"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("[::ffff:192.0.2.7]", "192.0.2.7"),
        ("[2001:db8:1:2:3:4:5:6]", "2001:db8:1:2::/64"),
        ("[2001:db8::6]", "2001:db8:0:0::/64"),
        ("[fe80::1:2:3:4]", "fe80:0:0:0::/64"),
        ("[1::2:3:4:5:6]", "1:0:0:2::/64"),
        ("[::1:2:3:4:5:6:7]", "0:1:2:3::/64"),
    ],
)
def test_addresses_that_one_client_may_have_many_of_are_one(address: str, expected: str) -> None:
    assert network(address) == expected


def test_a_user_name_that_nothing_proves_is_none() -> None:
    harness = Harness()
    unproven = harness.connect("c", username="u")
    assert harness.session("c").holder == ANONYMOUS
    assert holder_of(unproven.client, "u") == ANONYMOUS
    harness.connect("c", info=of("u"))
    assert harness.session("c").holder == "user 'u'"
    harness.peer = "process 5 of user 0"
    harness.connect("d", info=ConnectionInfo(local=True))
    assert harness.session("d").holder == UNIX_SOCKET


# --- each kind ------------------------------------------------------------------------------

SETTINGS = BrokerSettings(
    maximum_persistent_sessions=20,
    maximum_expressions=20,
    maximum_queued_bytes_total=200_000,
    unconfigured_channels=Unconfigured.TEMPORARY,
    maximum_channels=20,
)

Fill = Callable[[Harness, str, ConnectionInfo], bool]
"""Has one more of something for a client of this name; returns False if that is refused."""


def _client(harness: Harness, name: str, info: ConnectionInfo) -> MemoryClient:
    present = harness.broker.clients.get(name)
    found = [each for each in harness.clients if each.client is present]
    return found[0] if found else harness.connect(name, info=info)


def _session(harness: Harness, name: str, info: ConnectionInfo) -> bool:
    client = harness.open(info=info)
    number = len(harness.broker.sessions)
    connect = Connect(f"{name}-{number}", properties=Properties(session_expiry_interval=50))
    client.send(connect)
    connack = client.take_only(ConnAck)
    if connack.reason_code == QUOTA:
        assert "the limit is" in (connack.properties.reason_string or "")
    return connack.reason_code == ReasonCode.SUCCESS


def _will(harness: Harness, name: str, info: ConnectionInfo) -> bool:
    client = harness.open(info=info)
    number = len(harness.broker.sessions)
    client.send(Connect(f"{name}-{number}", will=Will("w", bytes(1_000))))
    connack = client.take_only(ConnAck)
    return connack.reason_code == ReasonCode.SUCCESS


def _subscribed(
    client: MemoryClient, topic_filter: str, where: str | None = None
) -> tuple[bool, str]:
    properties = Properties(user_properties=() if where is None else (("$where", where),))
    client.send(Subscribe(7, [SubscriptionRequest(topic_filter, 1)], properties))
    answer = next(each for each in client.take() if isinstance(each, SubAck))
    return answer.reason_codes[0] < 0x80, answer.properties.reason_string or ""


def _subscription(harness: Harness, name: str, info: ConnectionInfo) -> bool:
    number = len(harness.broker.router)
    granted, reason = _subscribed(_client(harness, name, info), f"{name}/{number}")
    assert granted or "topic filters of" in reason
    return granted


def _expression(harness: Harness, name: str, info: ConnectionInfo) -> bool:
    number = len(harness.broker.expressions)
    granted, reason = _subscribed(
        _client(harness, name, info), f"e/{number}", f"payload > {number}"
    )
    assert granted or "expressions of" in reason
    return granted


def _channel(harness: Harness, name: str, info: ConnectionInfo) -> bool:
    before = len(harness.broker.channels)
    granted, _ = _subscribed(_client(harness, name, info), f"$share/{before}/{name}")
    assert granted
    return len(harness.broker.channels) > before


def _delayed(harness: Harness, name: str, info: ConnectionInfo, size: int = 1) -> bool:
    client = _client(harness, name, info)
    client.send(Publish("$delay/1000/t", bytes(size), 1, packet_id=5))
    answer = client.take_only(PubAck)
    if answer.reason_code >= 0x80:
        assert "delayed messages of" in (answer.properties.reason_string or "")
    return answer.reason_code < 0x80


def _delayed_bytes(harness: Harness, name: str, info: ConnectionInfo) -> bool:
    return _delayed(harness, name, info, 1_000)


def _retained(harness: Harness, name: str, info: ConnectionInfo, size: int = 1) -> bool:
    client = _client(harness, name, info)
    number = len(harness.broker.retained)
    client.send(Publish(f"{name}/{number}", bytes(size), 2, retain=True, packet_id=5))
    answer = client.take_only(PubRec)
    client.send(PubRel(5))
    client.take()
    if answer.reason_code >= 0x80:
        assert "retained messages of" in (answer.properties.reason_string or "")
    return answer.reason_code < 0x80


def _retained_bytes(harness: Harness, name: str, info: ConnectionInfo) -> bool:
    return _retained(harness, name, info, 1_000)


@pytest.mark.parametrize(
    ("fill", "share"),
    [
        (_session, "sessions"),
        (_subscription, "subscriptions"),
        (_expression, "expressions"),
        (_channel, "channels"),
        (_delayed, "delayed"),
        (_delayed_bytes, "delayed_bytes"),
        (_retained, "retained"),
        (_retained_bytes, "retained_bytes"),
        (_will, "will_bytes"),
    ],
)
def test_whoever_fills_it_is_refused_and_others_are_not(
    fill: Fill, share: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 20 if share == "delayed" else 1_000
    monkeypatch.setattr("gateway.broker.publishing.delays.MAXIMUM_MESSAGES", most)
    size = 50_000 if share == "subscriptions" else 1_000_000
    harness = Harness(replace(SETTINGS, maximum_subscription_bytes=size))
    retained = harness.broker.retained
    retained.maximum_messages, retained.maximum_bytes = 1_000, 50_000
    if share == "retained":
        retained.maximum_messages = 20
    counts = []
    for name, info in (("stranger", PLAIN), ("neighbour", PLAIN), ("user", of("user"))):
        harness.peer = f"192.0.2.{len(name)}:40000"
        count = 0
        while fill(harness, name, info) and count < 1_000:
            count += 1
        counts.append(count)
        counted = harness.counters.count(f"tidegate/shares/refused/{share}")
        assert counted >= len(counts)
    assert counts[0] > counts[1] > counts[2] > 0
    assert fill(harness, "another", of("another"))
    for client in list(harness.clients):
        client.drop()
    for topic in [each.topic for each in retained.find("#", harness.now)]:
        harness.publish(topic, b"", retain=True)
    for _ in range(30):
        harness.pass_time(1_000)
    for each in harness.broker.shares:
        assert (each.total, each.largest(9), each.largest_clients(9)) == (0, [], []), each.name


def test_what_is_refused_to_a_client_of_mqtt_3_1_1() -> None:
    harness = Harness()
    harness.broker.retained.maximum_messages = 10
    client = harness.connect("c", MQTT_3_1_1)
    for number in range(1, 5):
        client.send(Publish(str(number), b"x", 1, retain=True, packet_id=number))
    assert len(client.take()) == 4
    client.send(Publish("5", b"x", 1, retain=True, packet_id=5))
    assert client.closed()
    assert client.client.end_reason.startswith("4 retained messages of client 'c'; the limit is 4")


def test_a_short_packet_has_no_reason() -> None:
    harness = Harness()
    harness.broker.retained.maximum_messages = 2
    client = harness.connect("c", maximum_packet_size=127)
    for number in range(1, 4):
        client.send(Publish(str(number), b"x", 1, retain=True, packet_id=number))
    none = ReasonCode.NO_MATCHING_SUBSCRIBERS
    assert client.take() == [PubAck(1, none), PubAck(2, QUOTA), PubAck(3, QUOTA)]


def test_at_qos_0_what_is_beyond_the_share_is_not_retained() -> None:
    harness = Harness()
    harness.broker.retained.maximum_messages = 10
    client = harness.connect("c")
    for number in range(10):
        client.send(Publish(str(number), b"x", retain=True))
    assert len(harness.broker.retained) == 4
    assert harness.counters.count("tidegate/retained/rejected") == 6
    client.send(Publish("0", b"longer", retain=True), Publish("1", b"", retain=True))
    assert len(harness.broker.retained) == 3
    client.send(Publish("never there", b"", retain=True))
    assert harness.broker.shares.retained.total == 3
    assert harness.counters.count("tidegate/retained/rejected") == 6


def test_a_batch_is_taken_as_far_as_the_share_goes() -> None:
    harness = Harness()
    harness.broker.retained.maximum_messages = 20
    client = harness.connect("c")
    client.send(
        *[Publish(str(each), b"x", 1, retain=True, packet_id=each) for each in range(1, 13)]
    )
    codes = [each.reason_code for each in client.take() if isinstance(each, PubAck)]
    assert [code >= 0x80 for code in codes] == [False] * 8 + [True] * 4


def test_a_retained_message_counts_to_who_wrote_it_last() -> None:
    harness = Harness()
    first, second = harness.connect("a"), harness.connect("b", info=of("u"))
    for _ in range(2):
        first.send(Publish("t", b"x", retain=True))
    assert harness.broker.shares.retained.largest(9) == [(ANONYMOUS, 1)]
    second.send(Publish("t", b"y", retain=True))
    assert harness.broker.shares.retained.largest(9) == [("user 'u'", 1)]
    harness.publish("t", b"by the gateway", retain=True)
    assert harness.broker.shares.retained.largest(9) == []
    second.send(Publish("t", b"y", retain=True, properties=Properties(message_expiry_interval=1)))
    assert harness.broker.shares.retained.largest(9) == [("user 'u'", 1)]
    harness.pass_time(20)
    assert harness.broker.shares.retained.largest(9) == []


def test_the_gateway_itself_has_no_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.broker.publishing.delays.MAXIMUM_MESSAGES", 5)
    harness = Harness()
    harness.broker.retained.maximum_messages = 5
    for number in range(5):
        assert harness.publish(str(number), qos=1, retain=True) < 0x80
        assert harness.publish("$delay/5/t", qos=1) < 0x80
    harness.pass_time(6)
    assert not any(share.total for share in harness.broker.shares)


def test_what_is_published_later_counts_to_who_has_gone_meanwhile() -> None:
    harness = Harness()
    client = harness.connect("c", username="unproven")
    client.send(Publish("$delay/5/t", b"x", retain=True))
    client.drop()
    harness.pass_time(5)
    assert harness.broker.shares.retained.largest(9) == [(ANONYMOUS, 1)]
    harness.connect("d", username="unproven", will=Will("w", b"x", retain=True)).drop()
    assert dict(harness.broker.shares.retained.largest(9)) == {ANONYMOUS: 1, GONE: 1}
    harness.connect("e", info=of("u"), will=Will("v", b"x", retain=True)).drop()
    assert dict(harness.broker.shares.retained.largest(9))["user 'u'"] == 1


# --- restarts, and how long sessions last -----------------------------------------------------


def test_after_a_restart_things_count_to_who_comes_back() -> None:
    harness = DurableHarness()
    for name, info in (("a", PLAIN), ("b", of("u"))):
        client = harness.connect(
            name,
            session_expiry=DAY,
            info=info,
            will=Will("w", b"x", properties=Properties(will_delay_interval=9)),
        )
        client.subscribe_all([SubscriptionRequest(f"{name}/+/x", 1)], where=f"payload > '{name}'")
        client.send(
            Publish(name, b"x", 1, retain=True, packet_id=1),
            Publish("$delay/1000/t", b"x", 1, packet_id=2),
        )
        harness.settle()

    def held() -> dict[str, dict[str, int]]:
        shares = [each for each in harness.broker.shares if each.name != "channels"]
        return {each.name: dict(each.largest(9)) for each in shares}

    before = held()
    assert all(set(each) == {ANONYMOUS, "user 'u'"} for each in before.values()), before
    harness.crash()
    assert all(set(each) == {GONE} for each in held().values()), held()
    harness.connect("a", session_expiry=DAY, clean_start=False)
    harness.connect("b", session_expiry=DAY, clean_start=False, info=of("u"))
    after = held()
    for kind in ("sessions", "subscriptions", "expressions", "delayed", "retained"):
        assert after[kind] == before[kind], kind


EXPIRIES = BrokerSettings(maximum_session_expiry=5 * DAY)


@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
@pytest.mark.parametrize(
    ("username", "proven", "granted"), [(None, False, DAY), ("u", False, DAY), ("u", True, 5 * DAY)]
)
def test_how_long_a_session_may_last(
    version: int, username: str | None, proven: bool, granted: int
) -> None:
    harness = Harness(EXPIRIES)
    info = ConnectionInfo(username=username if proven else None)
    fields: dict[str, Any] = {} if proven else {"username": username}
    client = harness.connect(
        "c",
        version,
        session_expiry=NEVER if version == MQTT_5 else 0,
        clean_start=False,
        info=info,
        **fields,
    )
    if version == MQTT_5:
        assert client.connack.properties.session_expiry_interval == granted
        client.send(Disconnect(properties=Properties(session_expiry_interval=NEVER)))
    else:
        client.drop()
    harness.pass_time(granted - 1)
    assert "c" in harness.broker.sessions
    harness.pass_time(1)
    assert "c" not in harness.broker.sessions


def test_the_session_of_a_user_may_last_for_ever() -> None:
    harness = Harness()
    harness.connect("u", session_expiry=NEVER, info=of("u")).drop()
    harness.pass_time(1_000 * DAY)
    assert set(harness.broker.sessions) == {"u"}


def test_of_delayed_messages_that_came_together_those_within_the_share_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gateway.broker.publishing.delays.MAXIMUM_MESSAGES", 20)
    harness = Harness(SETTINGS)
    client = harness.connect("c")
    together = [Publish("$delay/1000/t", b"x", 1, packet_id=n) for n in range(1, 31)]
    client.send(*together)
    codes = [answer.reason_code for answer in client.take() if isinstance(answer, PubAck)]
    kept = sum(code < 0x80 for code in codes)
    assert 0 < kept == harness.broker.delays.waiting < 20
    assert len(codes) == 30


def test_a_session_of_an_earlier_version_lasts_a_day_from_the_start_on() -> None:
    harness = DurableHarness(replace(EXPIRIES, maximum_anonymous_session_expiry=5 * DAY))
    harness.connect("c", session_expiry=NEVER).subscribe("t", 1)
    harness.connect("u", session_expiry=NEVER, info=of("u")).subscribe("t", 1)
    harness.settings = EXPIRIES
    harness.crash(2 * DAY)
    assert set(harness.broker.sessions) == {"c", "u"}
    harness.pass_time(DAY - 10)
    harness.crash(1)
    harness.pass_time(8)
    assert set(harness.broker.sessions) == {"c", "u"}
    harness.pass_time(2)
    assert set(harness.broker.sessions) == {"u"}


def test_a_part_of_the_gateway_has_no_share_of_subscriptions() -> None:
    harness = Harness()
    inline = Inline()
    harness.broker.subscribe_inline(inline, ["a"])
    number = harness.broker.router.find(inline, "a")
    assert number is not None
    harness.broker.router.discard(number)
    assert harness.broker.shares.subscriptions.total == 0


def test_nobody_is_told_of_what_another_client_was_refused() -> None:
    """A SUBSCRIBE of many filters takes several pieces, between which others are refused."""
    harness = Harness(replace(SETTINGS, maximum_subscription_bytes=10_000_000))
    client = harness.connect("c", info=of("c"))
    filters = [SubscriptionRequest("x" * 200 + f"/{n}", 0) for n in range(200)]
    data = encode(Subscribe(1, filters), MQTT_5)
    pieces = 0
    while harness.broker.receive(client.client, data, harness.instant):
        data = b""
        pieces += 1
        harness.broker.shares.refusal = "delayed messages of user 'somebody else'"
    harness.settle()
    answer = client.take_only(SubAck)
    assert pieces > 1
    assert answer.properties.reason_string is None
