"""When a kept message is too old to be delivered (MQTT 5, section 3.3.2.3.3)."""

import math

from gateway.mqtt.message import Message


def expired(message: Message, now: float) -> bool:
    """Tell whether the Message Expiry Interval has passed [MQTT-3.3.2-5].

    `now` is monotonic seconds, like `Message.arrived`; a message without an interval never ends.
    """
    interval = message.message_expiry
    return interval is not None and message.arrived + interval <= now


def expires(message: Message) -> float:
    """Return the monotonic second from which on `expired` is True, infinity if there is none."""
    interval = message.message_expiry
    return math.inf if interval is None else message.arrived + interval
