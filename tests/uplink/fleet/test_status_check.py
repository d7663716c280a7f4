"""The retained status shows whether another gateway with the same id was connected."""

import pytest

from gateway.mqtt.packets import Publish, SubscriptionRequest
from gateway.uplink.fleet.status_check import MAX_UNANSWERED, StatusCheck
from tests.support.fleet.uplinks import EPOCH, uplink_settings
from tests.support.table import table

TOPIC = "tidegate/barn/status"
OTHER = b'{"state":"offline","epoch":"ffffffffff","version":"0.1.0"}'


class Client:
    """Notes what a connection subscribes to."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def subscribe(self, *requests: SubscriptionRequest) -> None:
        self.sent += [f"+{each.topic_filter}" for each in requests]

    def unsubscribe(self, *topic_filters: str) -> None:
        self.sent += [f"-{each}" for each in topic_filters]


@pytest.fixture
def client() -> Client:
    return Client()


def status(payload: bytes, topic: str = TOPIC) -> Publish:
    return Publish(topic, payload, retain=True)


@table(
    "payload, found",
    [
        (OTHER, True),
        (OTHER.replace(b"ffffffffff", EPOCH.encode()), False),
        (OTHER.replace(b"ffffffffff", b"eeeeeeeeee"), False),  # of the start before
        (b"", False),
        (b"1", False),
        (b'{"epoch":1}', False),
        (b"\xff", False),
    ],
)
def test_another_epoch_is_another_gateway(payload: bytes, found: bool) -> None:
    client = Client()
    check = StatusCheck(uplink_settings(1, previous_epoch="eeeeeeeeee"))
    check.suspect()
    check.begin(client)
    assert check.receive(status(OTHER, "tidegate/barn/other")) is None
    error = check.receive(status(payload))
    assert (error is not None) == found
    assert client.sent == [f"+{TOPIC}", f"-{TOPIC}"]
    assert check.receive(status(OTHER)) is None  # nobody asked again


def test_only_an_end_without_a_reason_is_checked(client: Client) -> None:
    check = StatusCheck(uplink_settings(1))
    check.begin(client)
    assert check.receive(status(OTHER)) is None
    check.suspect()
    check.begin(client)
    check.begin(client)
    assert client.sent == [f"+{TOPIC}"]


def test_without_a_status_that_has_an_epoch_nothing_is_checked(client: Client) -> None:
    check = StatusCheck(uplink_settings(1, reports=False))
    check.suspect()
    check.begin(client)
    assert client.sent == []


def test_a_broker_that_ends_each_connection_at_the_check_is_not_asked_for_ever(
    client: Client,
) -> None:
    check = StatusCheck(uplink_settings(1))
    for _ in range(MAX_UNANSWERED + 2):
        check.suspect()
        check.begin(client)
    assert len(client.sent) == MAX_UNANSWERED
