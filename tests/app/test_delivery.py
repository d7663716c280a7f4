from random import randrange

from gateway.app.telemetry import show_delivery
from gateway.broker.broker import Broker
from gateway.broker.deadlines import Deadlines
from gateway.counters import Counters
from gateway.mqtt.packets import PingReq
from gateway.server.flush_wheel import FlushWheel
from gateway.settings.broker import BrokerSettings
from tests.support.broker.broker_harness import Harness


def figures(broker: Broker) -> dict[str, object]:
    """What is shown below `delivery/`."""
    counters = Counters()
    show_delivery(broker, FlushWheel(Deadlines(), 0), counters)
    prefix = "tidegate/delivery/"
    values = counters.values.items()
    return {name.removeprefix(prefix): each for name, each in values if name.startswith(prefix)}


def test_what_was_written_is_shown_by_class() -> None:
    broker = Broker(BrokerSettings(), Counters(), new_client_id=str, randrange=randrange)
    device, _, application = broker.delivery_classes
    device.flushes, device.bytes, device.packets = 1, 400, 5
    device.note_delays([(1.0, 99), (1.9, 1)], 2.0)
    application.flushes, application.bytes, application.packets = 2, 15, 3
    shown = figures(broker)
    assert (shown["device/packets_per_flush"], shown["device/bytes_per_flush"]) == (5, 400)
    assert (shown["device/delay_ms_p50"], shown["device/delay_ms_p99"]) == (1000, 1000)
    assert (shown["application/flushes"], shown["application/delay_ms_p99"]) == (2, 0)
    assert (shown["application/packets_per_flush"], shown["application/bytes_per_flush"]) == (
        1.5,
        7.5,
    )
    assert (shown["held_sessions"], shown["not_held"]) == (0, 0)


def test_packets_are_counted_by_class_while_a_client_is_there_and_when_it_is_gone() -> None:
    harness = Harness()
    harness.open()  # no client of any class yet
    device, persistent = harness.connect("d"), harness.persistent("p")
    device.send(PingReq())
    for _ in range(2):
        shown = figures(harness.broker)
        assert [shown[f"{name}/packets"] for name in ("device", "device_persistent")] == [2, 1]
        assert shown["application/packets"] == 0
        for client in (device, persistent):
            if not client.closed():
                client.drop()
