from gateway.mqtt.delivery_policy import EACH
from gateway.session.delivery_class import DELAYS, DeliveryClass


def test_delays_are_those_of_the_messages_that_left_last() -> None:
    found = DeliveryClass("device", EACH)
    assert found.delay(99) == 0.0
    found.note_delays([(1.0, 98), (2.0, 1), (2.5, 1)], 3.0)
    assert (found.delay(50), found.delay(99)) == (2.0, 2.0)
    found.note_delays([(2.75, 10 * DELAYS)], 3.0)
    assert (found.delay(50), found.delay(99)) == (0.25, 0.25)
