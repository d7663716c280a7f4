"""Logins that wait: for a password that is hashed elsewhere, or for the failures before them."""

from gateway.mqtt.packets import ConnAck, Connect, PingReq, PingResp, PubAck, Publish, Will
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.settings.broker import BrokerSettings
from tests.support.broker.broker_harness import Harness
from tests.support.broker.memory_client import MemoryClient
from tests.support.broker.users import Users

WRONG = ReasonCode.BAD_USER_NAME_OR_PASSWORD


def code(client: MemoryClient) -> ReasonCode | None:
    """Return what CONNECT was answered with, None if it was not yet."""
    packets = client.take()
    assert all(isinstance(packet, ConnAck) for packet in packets), packets
    return packets[0].reason_code if packets else None  # type: ignore[union-attr]  # just asserted


def try_to_log_in(harness: Harness, users: Users, password: bytes = b"x") -> MemoryClient:
    client = harness.open(authenticator=users)
    client.send(Connect("c", username="anna", password=password))
    return client


def test_a_wrong_password_is_answered_later_each_time(harness: Harness) -> None:
    users = Users(anna="secret")
    for delay in (1.0, 2.0, 4.0):
        client = try_to_log_in(harness, users)
        harness.pass_time(delay - 0.1)
        assert code(client) is None
        harness.pass_time(0.2)
        assert code(client) == WRONG
        assert client.closed()
    assert harness.counters.count("tidegate/access/logins_failed") == 3


def test_whoever_tries_meanwhile_waits_too(harness: Harness) -> None:
    users = Users(anna="secret")
    try_to_log_in(harness, users)
    right = try_to_log_in(harness, users, b"secret")
    other = harness.connect("d", authenticator=Users(bob="b"), username="bob", password=b"b")
    assert not other.closed()
    harness.pass_time(0.5)
    assert code(right) is None
    harness.pass_time(0.6)
    assert code(right) == ReasonCode.SUCCESS
    assert harness.counters.count("tidegate/access/logins_delayed") == 1
    assert code(try_to_log_in(harness, users, b"secret")) == ReasonCode.SUCCESS


def test_guesses_at_the_same_time_are_looked_at_one_by_one(harness: Harness) -> None:
    users = Users(anna="secret")
    clients = [try_to_log_in(harness, users) for _ in range(4)]
    answered = []
    for _ in range(20):
        harness.pass_time(1.0)
        answered.append(sum(client.closed() for client in clients))
    assert [answered[at] for at in (0, 1, 2, 6, 14)] == [1, 1, 2, 3, 4], answered


def test_no_user_name_is_no_guess(harness: Harness) -> None:
    client = harness.open(authenticator=Users())
    client.send(Connect("c"))
    assert code(client) == ReasonCode.NOT_AUTHORIZED


def test_the_delay_can_be_switched_off() -> None:
    harness = Harness(BrokerSettings(failed_login_delay=0.0))
    assert code(try_to_log_in(harness, Users())) == WRONG
    assert code(try_to_log_in(harness, Users())) == WRONG


def test_what_comes_behind_a_connect_waits_for_the_decision(harness: Harness) -> None:
    users = Users(later=True, anna="secret")
    client = harness.open(authenticator=users)
    client.send(Connect("c", username="anna", password=b"secret"), PingReq())
    client.send(Publish("a", b"", 1, packet_id=1))
    harness.pass_time(60.0)  # no connect timeout: it is not the client that is slow
    assert not client.take()
    users.answer(harness.instant)
    client.send_bytes(b"")
    connack, *rest = client.take()
    assert isinstance(connack, ConnAck)
    assert rest == [PingResp(), PubAck(1, ReasonCode.NO_MATCHING_SUBSCRIBERS)]


def test_a_client_that_leaves_before_the_decision(harness: Harness) -> None:
    users = Users(later=True, anna="secret")
    for client in (try_to_log_in(harness, users), try_to_log_in(harness, users, b"secret")):
        client.drop()
        users.answer(harness.instant)
    assert not harness.broker.sessions
    assert harness.counters.count("tidegate/access/logins_failed") == 0


def test_where_too_many_wait(harness: Harness) -> None:
    users = Users(later=True)
    client = try_to_log_in(harness, users)
    _, decide = users.waiting.pop()
    decide(None, harness.instant)
    harness.settle()
    assert code(client) == ReasonCode.QUOTA_EXCEEDED
    assert client.closed()


def test_a_connect_that_waits_is_counted(harness: Harness) -> None:
    users = Users(later=True, anna="secret")
    memory = harness.broker.memory
    client = harness.open(authenticator=users)
    will = Will("a", b"x" * 5_000)
    properties = Properties(user_properties=(("a", "b"),) * 10)
    client.send(Connect("c", username="anna", password=b"secret", will=will, properties=properties))
    assert 7_500 < memory.buffers < 9_000
    users.answer(harness.instant)
    harness.settle()
    assert code(client) == ReasonCode.SUCCESS
    memory.note(client.client, 0)
    assert memory.buffers == 0


def test_where_memory_has_no_room_logins_do_not_wait(harness: Harness) -> None:
    harness.broker.memory.limit = 40_000
    harness.broker.memory.allot()
    users = Users(later=True, anna="secret")
    clients = [harness.open(authenticator=users) for _ in range(10)]
    for client in clients:
        client.send(Connect("c", username="anna", will=Will("a", b"x" * 5_000)))
        harness.settle()
    assert 0 < harness.broker.memory.buffers <= 40_000
    assert harness.broker.memory.closed == sum(client.client.closing for client in clients) > 3
    while users.waiting:
        users.answer(harness.instant)
