"""Random rules, clients, subscriptions and messages against a naive reading of all of them.

Rules change in between, and nothing that was remembered may outlive them.
"""

from random import Random

import pytest

from gateway.access.access import AccessPolicy
from gateway.access.acl_file import parse
from gateway.broker import access
from gateway.broker.connecting.connection_info import ConnectionInfo
from gateway.mqtt.packets import Publish, SubscriptionRequest
from gateway.mqtt.reason_codes import FAILURE
from gateway.pieces import complete
from tests.support.broker.broker_harness import Harness
from tests.support.broker.memory_client import MemoryClient
from tests.support.naive.acl import CLIENTS, USERS, Who, allows, random_acl, random_topic
from tests.support.naive.matcher import matches

STEPS = 120
SEEDS = 40


class Model:
    """A broker and what each of its clients should get."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.harness = Harness()
        self.acl = random_acl(self.random)
        self.policy = AccessPolicy(parse(self.acl))
        complete(access.apply(self.harness.broker, [self.policy], 0.0))
        self.clients: dict[Who, MemoryClient] = {}
        self.subscribed: dict[Who, set[str]] = {}
        for client_id in CLIENTS:
            who = Who(self.random.choice(USERS), client_id)
            self.clients[who] = self.harness.connect(
                client_id, username=who.username, info=ConnectionInfo(access=self.policy)
            )
            self.subscribed[who] = set()

    def step(self) -> None:
        action = self.random.choices((self.publish, self.subscribe, self.change), (12, 3, 1))[0]
        action()

    def change(self) -> None:
        self.acl = random_acl(self.random)
        self.policy.replace(parse(self.acl))
        complete(access.apply(self.harness.broker, [self.policy], 0.0))

    def subscribe(self) -> None:
        who = self.random.choice(list(self.clients))
        topic_filter = self.random.choice(("#", "+", "a/#", "+/b", "$x/#", "a", "+/+"))
        prefix = self.random.choice(("", "", f"$share/g{CLIENTS.index(who.client_id)}/"))
        where = self.random.choice((None, "payload = 1"))
        request = SubscriptionRequest(prefix + topic_filter, 0)
        (code,) = self.clients[who].subscribe_all([request], where=where).reason_codes
        if code < FAILURE:
            self.subscribed[who].add(topic_filter)
        else:
            readable = [random_topic(self.random) for _ in range(100)]
            readable = [each for each in readable if allows(self.acl, who, each, "read")]
            assert not [each for each in readable if matches(topic_filter, each)], self.acl

    def publish(self) -> None:
        publisher = self.random.choice(list(self.clients))
        topic = random_topic(self.random)
        self.clients[publisher].send(Publish(topic, b"1"))
        written = allows(self.acl, publisher, topic, "write") and not topic.startswith("$")
        for who, client in self.clients.items():
            expected = (
                written
                and allows(self.acl, who, topic, "read")
                and any(matches(each, topic) for each in self.subscribed[who])
            )
            came = client.take()
            assert bool(came) == expected, (self.acl, publisher, who, topic, came)


@pytest.mark.uncovered
@pytest.mark.parametrize("part", range(2))
def test_everybody_gets_what_the_rules_say(part: int) -> None:
    for seed in range(part, SEEDS, 2):
        model = Model(seed)
        for _ in range(STEPS):
            model.step()
