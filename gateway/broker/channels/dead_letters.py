"""Messages that were given out for the last time."""

import logging
from typing import TYPE_CHECKING

from gateway.broker.channels.offer import Offer
from gateway.broker.instant import Instant
from gateway.mqtt.reason_codes import FAILURE

if TYPE_CHECKING:
    from gateway.broker.broker import Broker
    from gateway.broker.channels.channel import Channel

logger = logging.getLogger(__name__)


class DeadLetters:
    """Publishes them to the dead letter topic of a channel, or gives them up without one."""

    __slots__ = ("_broker", "_channel", "_letters")

    def __init__(self, broker: "Broker", channel: "Channel") -> None:
        self._broker = broker
        self._channel = channel
        self._letters: list[Offer] = []

    def add(self, letter: Offer) -> None:
        """Take over one message, which `send` looks after."""
        self._letters.append(letter)
        self._channel.alarm.set(0.0)

    def clear(self) -> None:
        """Forget all of them."""
        self._letters.clear()

    def send(self, instant: Instant) -> None:
        """Publish what there is; what is refused goes to a consumer once more."""
        letters, self._letters = self._letters, []
        channel = self._channel
        for letter in letters:
            if self._publish(letter, instant):
                channel.journal.done(letter.span, letter.span.first, letter.span.count)
            else:
                channel.waiting.returned.put(Offer(letter.span, max(letter.attempts - 1, 0), None))

    def _publish(self, letter: Offer, instant: Instant) -> bool:
        settings, figures = self._channel.settings, self._channel.figures
        message = letter.span.publication.new_message(letter.span.first)
        if settings.dead_letter_topic is None:
            figures.dropped += 1
            logger.warning(
                "channel %s: a message on %.80r is given up%s after %d attempts",
                settings.name,
                message.topic,
                " as too large for its consumers" if letter.above else "",
                letter.attempts,
            )
            return True
        message.user_properties = (
            *message.user_properties,
            ("topic", message.topic),
            ("channel", settings.name),
            ("attempt", str(letter.attempts)),
        )
        message.topic, message.retain = settings.dead_letter_topic, False
        if self._broker.publish(message, instant) >= FAILURE:
            return False
        figures.dead_lettered += 1
        return True
