from gateway.routing.destination import Destination, destinations
from gateway.routing.subscription import Subscription
from tests.support.subscribers import Someone


class Client(Someone):
    inline = False


def test_overlapping_subscriptions_make_one_destination() -> None:
    anna, bert = Client("anna"), Someone("bert")
    found = destinations(
        [
            Subscription(anna, "a/+", 0, identifier=7),
            Subscription(bert, "#", 1),
            Subscription(anna, "a/b", 2),
            Subscription(anna, "#", 1, identifier=3, retain_as_published=True),
            Subscription(bert, "a/b", 0),
        ]
    )
    assert [each.subscriber for each in found] == [anna, bert]
    assert [(each.qos, each.retain_as_published) for each in found] == [(2, True), (1, False)]
    assert [[*each.identifiers] for each in found] == [[7, 3], []]
    assert [[*each.topic_filters] for each in found] == [[], ["#", "a/b"]]


def test_who_shares_is_told_of_what() -> None:
    member = Destination(Client("anna"), shared=True)
    member.add(Subscription(member.subscriber, "$share/g/a", 1))
    assert [*member.topic_filters] == ["$share/g/a"]
