from gateway.mqtt.packets import PubAck
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.broker.channel_harness import channel_of, consumer, durable, got, publish


def test_figures_say_how_old_and_how_late() -> None:
    harness = durable()
    channel = channel_of(harness)
    assert channel.oldest(harness.now) == 0.0
    publish(harness, "ab")
    harness.pass_time(3)
    assert channel.oldest(harness.now) == 3.0
    client = consumer(harness, "c", receive_maximum=1)
    client.take()
    harness.pass_time(1)
    assert channel.oldest(harness.now) == 4.0
    client.send(PubAck(1, ReasonCode.UNSPECIFIED_ERROR))
    assert channel.oldest(harness.now) == 4.0
    harness.pass_time(0)
    got(client)
    assert channel.figures.latency(50) == 4.0


def test_a_message_of_qos_0_is_measured_when_it_is_given_out() -> None:
    harness = durable()
    publish(harness, "a", qos=0)
    harness.pass_time(2)
    client = consumer(harness, "c")
    assert got(client) == "a"
    assert channel_of(harness).figures.latency(50) == 2.0
