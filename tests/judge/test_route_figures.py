"""`routes/hits` and `routes/misses` count each message once, however it came."""

from tests.conformance.support import wire
from tests.judge.clients import join, reads
from tests.judge.driver import Driver
from tests.support.table import table

WHERE = wire.user_property("$where", "payload.v >= 0")

SUBSCRIBERS = {
    "nobody": None,
    "one": ("#", b""),
    "filtered": ("#", WHERE),
    "shared": ("$share/g/#", b""),
    "identified": ("#", wire.subscription_identifier(7)),
}


@table("who", SUBSCRIBERS)
@table("topics", [1, 3])
@table("n", [1, 2, 100])
@table("qos", [0, 1, 2])
@table("retain", [False, True])
def test_each_message_is_a_hit_or_a_miss(
    who: str, topics: int, n: int, qos: int, retain: bool
) -> None:
    driver = Driver()
    subscription = SUBSCRIBERS[who]
    if subscription is not None:
        topic_filter, properties = subscription
        join(driver, "s", wire.MQTT_5, topic_filter, qos, subscribe_properties=properties)
    publisher = join(driver, "p")
    packets = [
        wire.publish(
            wire.MQTT_5, f"t/{number % topics}", b'{"v":1}', qos, number + 1, retain=retain
        )
        for number in range(100)
    ]
    routes = driver.broker.admissions
    for data in reads(packets, n):
        publisher.say(data)
    assert routes.hits + routes.misses == 100
    assert routes.misses <= topics or subscription is None


def test_the_figures_are_the_same_however_many_are_read_at_once() -> None:
    found = set()
    for n in (1, 2, 100):
        driver = Driver()
        join(driver, "s", wire.MQTT_5, "#")
        publisher = join(driver, "p")
        packets = [wire.publish(wire.MQTT_5, "t", b"x") for _ in range(100)]
        for data in reads(packets, n):
            publisher.say(data)
        found.add((driver.broker.admissions.hits, driver.broker.admissions.misses))
    assert found == {(99, 1)}
