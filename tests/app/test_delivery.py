from types import SimpleNamespace

from gateway.app.delivery import delivery_settings, show_delivery
from gateway.broker.broker import Broker
from gateway.broker.deadlines import Deadlines
from gateway.broker.delivery_classes import DeliveryRule
from gateway.broker.settings import BrokerSettings
from gateway.config.sections.delivery import (
    DeliveryClassConfig,
    DeliveryConfig,
    DeliveryRuleConfig,
)
from gateway.counters import Counters
from gateway.mqtt.delivery_policy import EACH, DeliveryPolicy
from gateway.server.flush_wheel import FlushWheel

BUFFERED = DeliveryClassConfig("buffered")


def terms(policy: DeliveryPolicy) -> tuple[int, int, float]:
    return policy.count, policy.size, policy.delay


def test_every_message_leaves_at_once_unless_the_configuration_says_else() -> None:
    settings = delivery_settings(DeliveryConfig())
    assert {settings.device, settings.device_persistent, settings.application} == {EACH}
    assert settings.flush_sessions == 10_000


def test_each_class_has_bounds_of_its_own() -> None:
    rules = (DeliveryRuleConfig("application", "app-*"), DeliveryRuleConfig("device", user="a"))
    settings = delivery_settings(DeliveryConfig(7, 20, BUFFERED, BUFFERED, BUFFERED, rules))
    assert terms(settings.device) == terms(settings.device_persistent) == (5, 65_536, 0.2)
    assert terms(settings.application) == (10, 65_536, 0.0)
    assert settings.device.step == 0.02
    assert settings.rules == (
        DeliveryRule("application", "app-*"),
        DeliveryRule("device", user="a"),
    )
    assert settings.flush_sessions == 7
    other = DeliveryClassConfig("buffered", 3, 100, 50)
    assert terms(delivery_settings(DeliveryConfig(application=other)).application) == (3, 100, 0.05)


def test_what_was_written_is_shown_by_class() -> None:
    counters = Counters()
    broker = Broker(BrokerSettings(), counters, new_client_id=str)
    turn = SimpleNamespace(flushes=FlushWheel(Deadlines(), 0))
    device, _, application = broker.delivery_classes
    device.note_flush(5, 400)
    device.note_delays([(1.0, 99), (1.9, 1)], 2.0)
    application.note_flush(1, 10)
    show_delivery(SimpleNamespace(counters=counters, broker=broker, turn=turn))  # type: ignore[arg-type]  # by shape
    figures = {
        name.removeprefix("tidegate/delivery/"): value
        for name, value in counters.values.items()
        if name.startswith("tidegate/delivery/")
    }
    assert figures["device/packets_per_flush"] == 5
    assert figures["device/bytes_per_flush"] == 400
    assert (figures["device/delay_ms_p50"], figures["device/delay_ms_p99"]) == (1000, 1000)
    assert (figures["application/flushes"], figures["application/delay_ms_p99"]) == (1, 0)
    assert (figures["held_sessions"], figures["not_held"]) == (0, 0)
