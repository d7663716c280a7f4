"""Whose a session is: who may go on with it, and what becomes of it if another user comes."""

import logging

import pytest

from gateway.access.access import AccessPolicy
from gateway.access.acl_file import parse
from gateway.access.listeners import ListenerRights, Listeners
from gateway.broker import access
from gateway.broker.connecting.connection_info import ConnectionInfo
from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, ConnAck, Connect, PubAck, Publish, Will
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.pieces import complete
from tests.support.broker.broker_harness import Harness
from tests.support.broker.durable_broker import DurableHarness
from tests.support.broker.memory_client import MemoryClient
from tests.support.broker.users import Users

ACL = """\
topic read open
user anna
topic readwrite #
user ben
topic readwrite open
"""
NOT_VALID = ReasonCode.CLIENT_IDENTIFIER_NOT_VALID


class Hall:
    """A broker with two listeners: one that asks for passwords, and one that does not."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.users = {"anna", "ben"}
        self.policy = AccessPolicy(parse(ACL))
        self.listeners = Listeners(
            {
                "door": ListenerRights(self.policy, lambda name: name in self.users, proves=True),
                "yard": ListenerRights(self.policy),
            }
        )
        self.begin()

    def begin(self) -> None:
        self.harness.broker.listeners = self.listeners
        complete(access.apply(self.harness.broker, [self.policy], 0.0))

    def open(
        self,
        username: str | None,
        listener: str = "door",
        *,
        version: int = MQTT_5,
        client_id: str = "c",
        clean_start: bool = False,
        will: Will | None = None,
        anyone: bool = False,
        expiry: int | None = 3600,
    ) -> tuple[MemoryClient, ConnAck]:
        """Return a client and what its CONNECT was answered."""
        info = ConnectionInfo(access=self.policy, listener=listener, anyone_takes_over=anyone)
        proven = listener == "door" and username is not None
        client = self.harness.open(
            version, Users(anna="secret", ben="secret") if proven else None, info
        )
        properties = Properties(session_expiry_interval=expiry if version == MQTT_5 else None)
        password = b"secret" if proven else None
        client.send(
            Connect(client_id, version, clean_start, 0, username, password, will, properties)
        )
        connack, *rest = client.take()
        client.inbox[:0] = rest
        assert isinstance(connack, ConnAck)
        return client, connack

    def enter(self, username: str | None, listener: str = "door", **fields: object) -> MemoryClient:
        client, connack = self.open(username, listener, **fields)  # type: ignore[arg-type]  # by name
        assert connack.reason_code == ReasonCode.SUCCESS, connack
        return client

    def count(self, name: str) -> int:
        return self.harness.counters.count(f"tidegate/access/{name}")


@pytest.fixture
def hall(harness: Harness) -> Hall:
    return Hall(harness)


def topics(client: MemoryClient) -> list[str]:
    return [each.topic for each in client.take() if isinstance(each, Publish)]


@pytest.mark.uncovered
@pytest.mark.parametrize("clean_start", [False, True])
@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
@pytest.mark.parametrize("away", [False, True])
def test_another_user_is_refused(
    hall: Hall, caplog: pytest.LogCaptureFixture, *, away: bool, version: int, clean_start: bool
) -> None:
    will = Will("gone", b"", properties=Properties(will_delay_interval=100))
    anna = hall.enter("anna", will=will)
    watcher = hall.enter("anna", client_id="watcher")
    watcher.subscribe("gone")
    anna.subscribe("#", 1)
    if away:
        anna.drop()
    hall.harness.publish("secret", b"", 1)
    for username in ("ben", None):
        _, connack = hall.open(username, version=version, clean_start=clean_start)
        assert connack.reason_code == NOT_VALID
    assert hall.count("takeovers_refused") == 2
    refused = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert "client 'c' of user 'ben'" in refused[0]
    assert "it is a session of user 'anna', the listener was door (0x85)" in refused[0]
    assert not watcher.take()  # neither the will nor its deadline has gone
    if away:
        hall.harness.pass_time(101)
        assert topics(watcher) == ["gone"]
        anna = hall.enter("anna")
    assert topics(anna)[0] == "secret"


def test_the_session_of_a_client_without_a_name_is_nobody_elses(hall: Hall) -> None:
    hall.enter(None, "yard").drop()
    assert hall.open("ben")[1].reason_code == NOT_VALID
    assert hall.open(None, "yard")[1].session_present


def test_a_name_that_was_proven_is_not_anybodys_who_claims_it(hall: Hall) -> None:
    hall.enter("anna").drop()
    _, connack = hall.open("anna", "yard")
    assert connack.reason_code == NOT_VALID
    assert hall.open("anna")[1].session_present


def test_who_proves_a_name_goes_on_with_the_session_that_was_claimed_by_it(hall: Hall) -> None:
    claimed = hall.enter("anna", "yard")
    claimed.subscribe("open", 1)
    claimed.drop()
    anna, connack = hall.open("anna")
    assert connack.session_present
    assert hall.harness.session("c").home.listener == "door"
    hall.harness.publish("open", b"", 1)
    assert topics(anna) == ["open"]
    anna.drop()
    assert hall.open("anna", "yard")[1].reason_code == NOT_VALID


@pytest.mark.parametrize("away", [False, True])
def test_where_anyone_takes_over_the_session_ends(
    hall: Hall, caplog: pytest.LogCaptureFixture, *, away: bool
) -> None:
    will = Will("gone", b"", properties=Properties(will_delay_interval=100))
    anna = hall.enter("anna", will=will)
    anna.subscribe("#", 1)
    watcher = hall.enter("anna", client_id="watcher")
    watcher.subscribe("gone")
    if away:
        anna.drop()
    hall.harness.publish("open", b"", 1)
    ben, connack = hall.open("ben", anyone=True)
    assert (connack.reason_code, connack.session_present) == (ReasonCode.SUCCESS, False)
    assert topics(watcher) == ["gone"]  # the session has ended [MQTT-3.1.2-8]
    hall.harness.publish("open", b"", 1)
    assert not ben.take()
    assert hall.count("takeovers") == 1
    line = "client 'c' of user 'ben' at 192.0.2.7:40000 ends the session of user 'anna'"
    assert any(line in each.getMessage() for each in caplog.records)
    assert not hall.harness.broker.router.count(hall.harness.session("c"))


def test_a_session_whose_time_is_up_is_nobodys(hall: Hall) -> None:
    hall.enter("anna", expiry=10).drop()
    hall.harness.now += 11  # the timer has not run yet
    assert hall.open("ben")[1].reason_code == ReasonCode.SUCCESS


def test_a_restart_changes_nothing_of_it() -> None:
    harness = DurableHarness()
    hall = Hall(harness)
    hall.enter("anna").drop()
    harness.listeners = hall.listeners
    harness.crash()
    assert hall.open("ben")[1].reason_code == NOT_VALID
    assert hall.open("anna", "yard")[1].reason_code == NOT_VALID
    assert hall.open("anna")[1].session_present


def test_a_session_of_which_no_listener_is_known_is_adopted_by_its_user() -> None:
    """One that an earlier Tidegate wrote, or whose listener is not configured any more."""
    harness = DurableHarness()
    hall = Hall(harness)
    anna = hall.enter("anna")
    anna.subscribe("#", 1)
    anna.drop()
    harness.disk.connection.execute("UPDATE session SET listener = NULL, proven = 0")
    harness.listeners = hall.listeners
    harness.crash()
    hall.begin()
    assert hall.open("ben")[1].reason_code == NOT_VALID
    assert hall.open("anna", "yard")[1].reason_code == NOT_VALID  # it may have been proven
    harness.publish("secret", b"", 1)
    anna = hall.enter("anna")
    harness.publish("secret", b"", 1)
    assert topics(anna) == ["secret", "secret"]
    assert harness.session("c").home.listener == "door"


@pytest.mark.parametrize(
    ("change", "published"), [("nothing", True), ("user", False), ("rule", False)]
)
def test_a_will_is_published_by_the_rights_of_its_user_then(
    hall: Hall, caplog: pytest.LogCaptureFixture, change: str, *, published: bool
) -> None:
    watcher = hall.enter("anna", client_id="watcher")
    watcher.subscribe("open")
    ben = hall.enter("ben", will=Will("open", b"gone"))
    if change == "user":
        hall.users.remove("ben")
    elif change == "rule":
        hall.policy.replace(parse("user anna\ntopic readwrite #\n"))  # not applied to him yet
    ben.drop()
    assert topics(watcher) == (["open"] if published else [])
    assert hall.count("wills") == (not published)
    lines = any("will of client 'c' of user 'ben' on 'open'" in each for each in caplog.messages)
    assert lines != published


@pytest.mark.parametrize("expiry", [0, 3600])
@pytest.mark.parametrize(
    ("change", "published"), [("nothing", True), ("user", False), ("rule", False)]
)
def test_a_will_after_a_restart_goes_by_its_own_listener(
    change: str, *, published: bool, expiry: int
) -> None:
    harness = DurableHarness()
    hall = Hall(harness)
    hall.listeners = Listeners(
        {
            "first": ListenerRights(AccessPolicy(parse("user ben\ntopic read x\n"))),
            "door": ListenerRights(hall.policy, lambda name: name in hall.users, proves=True),
        }
    )
    hall.begin()
    will = Will("open", b"gone", properties=Properties(will_delay_interval=5))
    hall.enter("ben", will=will, expiry=expiry)
    harness.listeners = hall.listeners
    if change == "user":
        hall.users.remove("ben")
    elif change == "rule":
        hall.policy.replace(parse("user anna\ntopic readwrite #\n"))
    harness.crash()
    hall.begin()
    watcher = hall.enter("anna", client_id="watcher")
    watcher.subscribe("open")
    harness.pass_time(10)
    assert topics(watcher) == (["open"] if published else [])
    assert hall.count("wills") == (not published)


def test_the_will_of_a_restart_is_not_withdrawn_by_another_user() -> None:
    harness = DurableHarness()
    hall = Hall(harness)
    hall.enter("ben", will=Will("open", b"gone"), expiry=0)
    harness.listeners = hall.listeners
    harness.crash()
    hall.begin()
    watcher = hall.enter("anna", client_id="watcher")
    watcher.subscribe("open")
    assert hall.open("anna")[1].reason_code == NOT_VALID
    harness.pass_time(10)
    assert topics(watcher) == ["open"]
    assert hall.open("anna")[1].reason_code == ReasonCode.SUCCESS


def test_the_owner_gets_everything_after_others_have_tried(hall: Hall) -> None:
    """Routes that were found meanwhile are right for it."""
    anna, writer = hall.enter("anna"), hall.enter("anna", client_id="writer")
    anna.subscribe("#", 1)
    for number in (1, 2, 3):
        writer.send(Publish("secret", b"%d" % number, 1, packet_id=number))
        hall.open("ben")
        hall.open(None, "yard")
    came = [each for each in anna.take() if isinstance(each, Publish)]
    assert [each.payload for each in came] == [b"1", b"2", b"3"]
    anna.send(*(PubAck(each.packet_id) for each in came))
    assert not hall.harness.session("c").inflight
