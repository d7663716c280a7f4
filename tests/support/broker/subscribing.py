"""What tests of subscriptions say and look at."""

from gateway.mqtt.packets import Packet, Publish, SubscriptionRequest


def topics(packets: list[Packet]) -> list[str]:
    return [packet.topic for packet in packets if isinstance(packet, Publish)]


def request(topic_filter: str, qos: int = 0, **options: object) -> SubscriptionRequest:
    return SubscriptionRequest(topic_filter, qos, **options)  # type: ignore[arg-type]  # by name
