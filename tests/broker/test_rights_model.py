"""Random users, listeners, sessions, rules, wills and restarts beside a naive reading of the rules.

Nobody receives what its user may not read at that moment, at the session's home or by the
connection; what somebody is owed arrives once both may. What clients cause is done with their own
rights, whatever way round they take: wills, delayed messages, peer to peer, channels and their dead
letters, shared subscriptions, retained messages.
"""

import math
from dataclasses import dataclass, field
from random import Random

import pytest

from gateway.access.access import AccessPolicy
from gateway.access.acl_file import parse
from gateway.access.listeners import ListenerRights, Listeners
from gateway.broker import access
from gateway.broker.connecting.connection_info import ConnectionInfo
from gateway.broker.restore import WILL_GRACE
from gateway.mqtt.message import Message
from gateway.mqtt.packets import (
    MQTT_5,
    ConnAck,
    Connect,
    Disconnect,
    Packet,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    Will,
)
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import FAILURE, ReasonCode
from gateway.pieces import complete
from gateway.settings.broker import BrokerSettings
from gateway.settings.channel import ChannelSettings
from tests.support.broker.durable_broker import DurableHarness
from tests.support.broker.inline import Inline
from tests.support.broker.memory_client import MemoryClient
from tests.support.broker.users import Users
from tests.support.naive.acl import Who, allows
from tests.support.naive.matcher import matches

STEPS = 150
SEEDS = 30

USERS = ("anna", "ben", "cleo")
IDS = ("c1", "c2", "c3")
DOORS = ("north", "south")
"""Listeners that ask for a password; at the third one a user name is what a client claims."""
LISTENERS = (*DOORS, "yard")
TOPICS = ("a", "b", "a/x", "b/x", "dead")
FILTERS = (
    "#",
    "#",
    "#",
    "a",
    "a/#",
    "+/x",
    "b",
    "$share/g/a/#",
    "$share/jobs/b/#",
    "dead",
    "p/p2p/+",
)
RULES = ("a", "b", "a/#", "b/#", "+/x", "dead", "#", "#", "#", "p/#", "+/p2p/%c")
EVERYTHING = "pattern readwrite #\n"

SETTINGS = BrokerSettings(
    p2p=True,
    failed_login_delay=0,
    channels=(
        ChannelSettings(
            "jobs", "b/#", inflight_timeout=5.0, max_attempts=2, dead_letter_topic="dead"
        ),
    ),
)


@dataclass(frozen=True)
class Came:
    """How a client came: who it says it is, and where."""

    username: str | None
    listener: str

    @property
    def proven(self) -> bool:
        return self.username is not None and self.listener in DOORS


@dataclass(eq=False)
class Model:
    """A session as a naive reader knows it."""

    owner: Came
    expiry: int
    connection: Came | None = None
    will: bool = False
    ends: float = math.inf
    subscribed: dict[str, int] = field(default_factory=dict)
    owed: set[bytes] = field(default_factory=set)
    resume: bool = True  # False: it is there for its will alone


class World:
    """A broker, its clients, and what is known of both."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.harness = DurableHarness(SETTINGS)
        self.acls = {name: self.random_acl() for name in LISTENERS}
        self.policies = {name: AccessPolicy(parse(acl)) for name, acl in self.acls.items()}
        self.users = set(USERS)
        self.harness.listeners = Listeners(
            {
                name: ListenerRights(policy, self.is_user if name in DOORS else None, name in DOORS)
                for name, policy in self.policies.items()
            }
        )
        self.sessions: dict[str, Model] = {}
        self.clients: dict[str, MemoryClient] = {}
        self.unacknowledged: dict[str, list[Packet]] = {}
        self.wills: dict[bytes, Came] = {}
        self.sent: dict[bytes, str] = {}  # the topic of each payload that was accepted
        self.number = 0
        self.begin()

    def is_user(self, name: str) -> bool:
        return name in self.users

    def begin(self) -> None:
        broker = self.harness.broker
        broker.listeners = self.harness.listeners
        watcher = Inline()
        watcher.receive = self.published  # type: ignore[method-assign]  # in place of a list
        broker.subscribe_inline(watcher, ["#"])
        self.apply()

    def apply(self) -> None:
        broker, now = self.harness.broker, self.harness.now
        complete(access.apply(broker, self.policies.values(), now))
        self.harness.settle()

    def random_acl(self) -> str:
        lines = []
        for user in (None, *USERS):
            lines += [] if user is None else [f"user {user}"]
            for _ in range(self.random.randint(0, 4)):
                word = self.random.choice(("read", "write", *["readwrite"] * 4, "deny"))
                topic = self.random.choice(RULES).replace("%c", "c1")
                lines.append(f"topic {word} {topic}")
        for _ in range(self.random.randint(0, 2)):
            word = self.random.choice(("read", "readwrite", "readwrite"))
            lines += ["pattern readwrite a/#"] if self.random.random() < 0.5 else []
            lines.append(f"pattern {word} {self.random.choice(RULES)}")
        return "".join(f"{line}\n" for line in lines)

    def may(self, came: Came, client_id: str, topic: str, wanted: str) -> bool:
        return allows(self.acls[came.listener], Who(came.username, client_id), topic, wanted)

    def next_payload(self) -> bytes:
        self.number += 1
        return b"%d" % self.number

    # what the broker does

    def published(self, message: Message, topic_filters: list[str]) -> ReasonCode:
        """Check that whoever causes a message may, and note who is owed it."""
        del topic_filters
        came = self.wills.get(message.payload)
        if came is not None:
            assert message.client_id is not None
            assert self.may(came, message.client_id, message.topic, "write"), self.acls
            assert not came.proven or came.username in self.users
        elif message.topic != "dead":  # which the configuration lets channels write
            assert self.sent.get(message.payload) == message.topic
        self.owe(message.topic, message.payload, message.qos)
        return ReasonCode.SUCCESS

    def owe(self, topic: str, payload: bytes, qos: int) -> None:
        for client_id, model in self.sessions.items():
            asked = [each for name, each in model.subscribed.items() if matches(name, topic)]
            kept = model.connection is not None or model.expiry > 0
            if not (min(qos, max(asked, default=0)) and kept and model.resume):
                continue
            if self.may(model.owner, client_id, topic, "read"):
                model.owed.add(payload)

    def look(self) -> None:
        """Check what everybody got in the last step, and acknowledge some of it."""
        while True:
            self.read()
            for client_id in self.clients:
                if self.random.random() < 0.6:
                    self.acknowledge(client_id)
            if not any(client.inbox for client in self.clients.values()):
                return

    def read(self) -> None:
        for client_id, client in self.clients.items():
            model = self.sessions[client_id]
            assert model.connection is not None
            for packet in client.take():
                if isinstance(packet, Publish):
                    names = (client_id, packet.topic, "read")
                    assert self.may(model.connection, *names), (model, packet, self.acls)
                    assert self.may(model.owner, *names), (model, packet, self.acls)
                    model.owed.discard(packet.payload)
                    if not packet.qos:
                        continue
                if isinstance(packet, Publish | PubRel):
                    self.unacknowledged[client_id].append(packet)

    def acknowledge(self, client_id: str) -> None:
        packets, self.unacknowledged[client_id] = self.unacknowledged[client_id], []
        for packet in packets:
            if isinstance(packet, PubRel):
                self.clients[client_id].send(PubComp(packet.packet_id))
            elif isinstance(packet, Publish):
                answer = PubAck if packet.qos == 1 else PubRec
                self.clients[client_id].send(answer(packet.packet_id))

    # what clients and the operator do

    def step(self) -> None:
        self.forget_ended()
        actions = {
            self.connect: 12,
            self.subscribe: 6,
            self.publish: 30,
            self.drop: 6,
            self.say_goodbye: 1,
            self.change_rules: 3,
            self.change_users: 1,
            self.crash: 1,
            self.pass_time: 4,
        }
        if not self.clients:
            self.connect()
        self.random.choices([*actions], [*actions.values()])[0]()
        self.look()

    def forget_ended(self) -> None:
        """Forget sessions that have ended, none of them too early."""
        self.harness.pass_time(0)
        for client_id, model in [*self.sessions.items()]:
            if client_id not in self.harness.broker.sessions:
                assert model.connection is None
                assert model.ends <= self.harness.now
                self.forget(model)

    def forget(self, model: Model) -> None:
        self.sessions = {name: each for name, each in self.sessions.items() if each is not model}

    def connect(self) -> None:
        client_id = self.random.choice(IDS)
        own = USERS[IDS.index(client_id)]
        username = self.random.choice((None, *USERS, own, own, own, own, own))
        came = Came(username, self.random.choice(LISTENERS))
        if came.username is not None and came.proven and came.username not in self.users:
            return
        self.connect_as(client_id, came, clean_start=self.random.random() < 0.2)

    def connect_as(self, client_id: str, came: Came, *, clean_start: bool) -> None:
        model = self.sessions.get(client_id)
        will = self.random_will(client_id, came) if self.random.random() < 0.4 else None
        expiry = self.random.choice((0, 60, 3600, 3600))
        another = model is not None and (
            model.owner.username != came.username or (model.owner.proven and not came.proven)
        )
        if another:
            expected = ReasonCode.CLIENT_IDENTIFIER_NOT_VALID
        else:
            expected = ReasonCode.SUCCESS
            if will is not None and not self.may(came, client_id, will.topic, "write"):
                expected = ReasonCode.NOT_AUTHORIZED
        old = self.clients.get(client_id)
        client, connack = self.open(client_id, came, will, expiry, clean_start=clean_start)
        assert connack.reason_code == expected, (model, came, connack)
        if expected != ReasonCode.SUCCESS:
            assert old is None or not old.closed()
            return
        present = model is not None and model.resume and not clean_start
        present = present and (model is None or model.connection is None or model.expiry > 0)
        assert connack.session_present == present, (model, came)
        if not present or model is None:
            model = self.sessions[client_id] = Model(came, expiry)
        elif came.proven and not model.owner.proven:
            model.owner = came
        model.connection, model.expiry, model.will = came, expiry, will is not None
        model.ends = math.inf
        self.clients[client_id], self.unacknowledged[client_id] = client, []

    def open(
        self, client_id: str, came: Came, will: Will | None, expiry: int, *, clean_start: bool
    ) -> tuple[MemoryClient, ConnAck]:
        info = ConnectionInfo(access=self.policies[came.listener], listener=came.listener)
        users = Users(anna="x", ben="x", cleo="x") if came.proven else None
        client = self.harness.open(MQTT_5, users, info)
        properties = Properties(
            session_expiry_interval=expiry or None, receive_maximum=self.random.choice((2, None))
        )
        password = b"x" if came.proven else None
        client.send(
            Connect(client_id, MQTT_5, clean_start, 0, came.username, password, will, properties)
        )
        connack, *rest = client.take()
        assert isinstance(connack, ConnAck)
        client.inbox[:0] = rest
        return client, connack

    def random_will(self, client_id: str, came: Came) -> Will:
        payload = self.next_payload()
        self.wills[payload] = came
        del client_id
        delay = self.random.choice((0, 3, 30))
        properties = Properties(will_delay_interval=delay or None)
        topic = self.random.choice(TOPICS)
        return Will(topic, payload, self.random.choice((0, 1)), False, properties)

    def subscribe(self) -> None:
        if not self.clients:
            return
        client_id, client = self.random.choice([*self.clients.items()])
        topic_filter, qos = self.random.choice(FILTERS), self.random.choice((0, 1, 1, 2))
        code = client.subscribe(topic_filter, qos)
        if code < FAILURE and not topic_filter.startswith("$share/"):
            self.sessions[client_id].subscribed[topic_filter] = qos

    def publish(self) -> None:
        for _ in range(self.random.randint(1, 6) if self.clients else 0):
            self.publish_one()

    def publish_one(self) -> None:
        client_id, client = self.random.choice([*self.clients.items()])
        came = self.sessions[client_id].connection
        assert came is not None
        topic = self.random.choice((*TOPICS, *TOPICS, *TOPICS, f"p/p2p/{self.random.choice(IDS)}"))
        payload, qos = self.next_payload(), self.random.choice((0, 1, 1, 2))
        written = self.may(came, client_id, topic, "write")
        if written:
            self.sent[payload] = topic
        prefix = f"$delay/{self.random.randint(1, 20)}/" if self.random.random() < 0.2 else ""
        retain = self.random.random() < 0.1
        client.send(
            Publish(prefix + topic, payload, qos, retain, packet_id=self.number % 60_000 + 1)
        )
        if written and not prefix and "/p2p/" in topic:
            self.owe_one(topic, payload, qos)
        packets = client.take()
        client.inbox += [each for each in packets if isinstance(each, Publish | PubRel)]
        for answer in [each for each in packets if isinstance(each, PubAck | PubRec)]:
            refused = answer.reason_code == ReasonCode.NOT_AUTHORIZED
            assert refused != written, (came, topic, self.acls)
            if isinstance(answer, PubRec) and not refused:
                client.send(PubRel(answer.packet_id))

    def owe_one(self, topic: str, payload: bytes, qos: int) -> None:
        client_id = topic.rpartition("/")[2]
        model = self.sessions.get(client_id)
        if model is None or not model.resume or not qos:
            return
        if model.connection is None and not model.expiry:
            return
        if self.may(model.owner, client_id, topic, "read"):
            model.owed.add(payload)

    def drop(self) -> None:
        if self.clients:
            self.lose(self.random.choice([*self.clients]))

    def lose(self, client_id: str) -> None:
        client = self.clients.pop(client_id)
        self.left(client_id)
        client.drop()

    def left(self, client_id: str) -> None:
        model = self.sessions[client_id]
        model.connection, model.ends = None, self.harness.now + model.expiry
        if not model.expiry:
            self.forget(model)

    def say_goodbye(self) -> None:
        if not self.clients:
            return
        client_id = self.random.choice([*self.clients])
        client = self.clients.pop(client_id)
        self.left(client_id)
        client.send(Disconnect())

    def change_rules(self) -> None:
        name = self.random.choice(LISTENERS)
        self.acls[name] = self.random_acl()
        self.policies[name].replace(parse(self.acls[name]))
        self.apply()

    def change_users(self) -> None:
        name = self.random.choice(USERS)
        if name not in self.users:
            self.users.add(name)
            return
        self.users.remove(name)
        for client_id in [*self.clients]:
            came = self.sessions[client_id].connection
            if came is not None and came.proven and came.username == name:
                self.lose(client_id)

    def crash(self) -> None:
        for client_id in [*self.clients]:
            model = self.sessions[client_id]
            model.connection, model.ends = None, self.harness.now + 1 + model.expiry
            if not model.expiry and model.will:
                model.resume, model.ends = False, self.harness.now + 1 + WILL_GRACE
            elif not model.expiry:
                self.forget(model)
        self.clients = {}
        self.harness.crash()
        self.begin()

    def pass_time(self) -> None:
        self.harness.pass_time(self.random.choice((1, 4, 10, 61)))

    def finish(self) -> None:
        """Let everybody read everything again: what was owed comes."""
        self.users = set(USERS)
        for name in LISTENERS:
            self.acls[name] = EVERYTHING
            self.policies[name].replace(parse(EVERYTHING))
        self.apply()
        self.look()
        self.forget_ended()
        for client_id, model in [*self.sessions.items()]:
            if not model.resume:
                continue
            owed = model.owed
            if model.connection != model.owner:
                self.connect_as(client_id, model.owner, clean_start=False)
            if self.sessions[client_id] is not model:
                continue  # it ended with its connection
            self.look()
            while self.unacknowledged[client_id]:
                self.acknowledge(client_id)
                self.look()
            assert not owed, (client_id, model)


@pytest.mark.uncovered
@pytest.mark.parametrize("part", range(2))
def test_nobody_gets_what_is_not_theirs_and_everybody_what_is(part: int) -> None:
    for seed in range(part, SEEDS, 2):
        world = World(seed)
        for _ in range(STEPS):
            world.step()
        world.finish()
