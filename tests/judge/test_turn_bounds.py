"""What one turn gives all connections is bounded in bytes, whatever the payloads' sizes."""

from gateway.session.traffic import TURN_BYTES
from tests.conformance.support import wire
from tests.judge.clients import join
from tests.judge.driver import ALL, Driver
from tests.support.table import table

RECEIVERS = 150

SHAPES = {"empty first": [0, 1], "large first": [1, 0], "one in ten": [0] * 9 + [1]}
"""Which payloads are large and which empty; they come round."""


def most_of_a_turn(large: int, shape: str, topics: int, qos: int) -> int:
    """Return the most bytes of payload that one turn gave to 150 receivers of 2 MB at once."""
    driver = Driver()
    for number in range(RECEIVERS):
        join(driver, f"s{number}", wire.MQTT_5, "#", qos)
    publisher = join(driver, "p")
    sizes = SHAPES[shape]
    data = b"".join(
        wire.publish(
            wire.MQTT_5,
            f"t/{number % topics}",
            bytes(large * sizes[number % len(sizes)]),
            qos,
            number + 1,
        )
        for number in range(2_000_000 // large)
    )
    broker = driver.broker
    broker.traffic.begin_turn()
    most, before, more = 0, broker.traffic.bytes_sent, True
    while more:
        more = broker.receive(publisher.client, data, driver.instant)
        data = b""
        most = max(most, broker.traffic.bytes_sent - before)
        before = broker.traffic.bytes_sent
        for link in driver.links:  # nobody looks at the bytes: what is given is counted
            link.client.connection.data_to_send(ALL)
    return most


@table("shape", SHAPES)
@table("topics", [1, 2])
@table("large", [20_000, 200_000])
@table("qos", [0, 1, 2])
def test_a_turn_is_bounded_in_bytes(large: int, shape: str, topics: int, qos: int) -> None:
    assert most_of_a_turn(large, shape, topics, qos) <= TURN_BYTES + RECEIVERS * large
