"""The subscriptions of a connection to the fleet, which the next one ends."""

from collections.abc import Callable

import pytest

from gateway.mqtt.packets import SubscriptionRequest
from gateway.settings.uplink import UplinkSettings
from gateway.uplink.context import Requests
from gateway.uplink.fleet.fleet import Subscriptions

RECALL = "tidegate/gw/control/recall"
SETTINGS = UplinkSettings(urls=("mqtt://fleet",), gateway_id="gw")


class Client:
    """Notes what a connection sends, and answers an UNSUBSCRIBE when a test wants it."""

    def __init__(self, *, session_present: bool) -> None:
        self.session_present = session_present
        self.sent: list[tuple[str, ...]] = []
        self.asked: list[SubscriptionRequest] = []
        self.answer: Callable[[], None] = lambda: None

    def subscribe(self, *requests: SubscriptionRequest) -> None:
        self.asked += requests
        self.sent.append(("+", *(each.topic_filter for each in requests)))

    def unsubscribe(self, *topic_filters: str, on_done: Callable[[], None]) -> None:
        self.sent.append(("-", *topic_filters))
        self.answer = on_done

    def flush(self) -> None:
        self.sent.append(("flush",))


def _requests(*topics: str) -> Requests:
    requests = Requests(recall=lambda _: None)
    requests.subscribed.add(topics)
    return requests


@pytest.mark.parametrize(
    ("present", "sent"), [(True, [("-", "b", "old"), ("+", RECALL)]), (False, [("+", RECALL)])]
)
def test_a_connection_ends_what_it_does_not_want(
    present: bool, sent: list[tuple[str, ...]]
) -> None:
    client, requests = Client(session_present=present), _requests(RECALL, "old", "b")
    Subscriptions(client, requests, SETTINGS).begin()
    assert client.sent == sent
    client.answer()
    assert requests.subscribed.topics == {RECALL}


def test_what_is_wanted_for_a_while_is_noted_until_it_ends() -> None:
    client, requests = Client(session_present=False), _requests()
    subscriptions = Subscriptions(client, requests, SETTINGS)
    subscriptions.begin()
    subscriptions.subscribe(SubscriptionRequest("a/#", no_local=True), SubscriptionRequest(RECALL))
    assert requests.subscribed.topics == {RECALL, "a/#"}
    assert [each.qos for each in client.asked] == [1, 0, 1]  # the recall's stays as it is
    subscriptions.unsubscribe("a/#", RECALL)
    assert client.sent[-1] == ("-", "a/#")
    assert requests.subscribed.topics == {RECALL, "a/#"}  # until the fleet has answered
    client.answer()
    assert requests.subscribed.topics == {RECALL}
