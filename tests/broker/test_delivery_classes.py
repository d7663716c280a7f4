from gateway.broker.delivery_classes import DeliveryClasses
from gateway.mqtt.delivery_policy import EACH, DeliveryPolicy
from gateway.settings.delivery import DeliveryClassSettings, DeliverySettings

BUFFERED = DeliveryClassSettings("buffered")


def policies(settings: DeliverySettings) -> list[DeliveryPolicy]:
    """Return those of `device`, `device_persistent` and `application`."""
    return [each.policy for each in DeliveryClasses(settings)]


def terms(policy: DeliveryPolicy) -> tuple[int, int, float]:
    return policy.count, policy.size, policy.delay


def test_every_message_leaves_at_once_unless_the_configuration_says_else() -> None:
    assert policies(DeliverySettings()) == [EACH, EACH, EACH]


def test_each_class_has_bounds_of_its_own() -> None:
    device, persistent, application = policies(
        DeliverySettings(7, 20, BUFFERED, BUFFERED, BUFFERED)
    )
    assert terms(device) == terms(persistent) == (5, 65_536, 0.2)
    assert terms(application) == (10, 65_536, 0.0)
    assert device.step == 0.02
    other = DeliveryClassSettings("buffered", 3, 100, 50)
    assert terms(policies(DeliverySettings(application=other))[2]) == (3, 100, 0.05)
