"""Messages whose last attempt has failed."""

import logging
from typing import NamedTuple

from gateway.broker.channels.alarm import Alarm
from gateway.broker.channels.figures import ChannelFigures
from gateway.broker.channels.waiting import Offer, Waiting
from gateway.broker.instant import Instant
from gateway.broker.publishing.inline import Publish
from gateway.mqtt.errors import ProtocolError
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import FAILURE
from gateway.mqtt.topics import check_topic_name
from gateway.session.session import Session
from gateway.settings.channel import ChannelSettings

logger = logging.getLogger(__name__)


AGAIN_SECONDS = 1.0
"""Seconds until a refused letter is tried again."""

_NAMES = ("topic", "channel", "attempt")


class Origin(NamedTuple):
    """Where a dead letter comes from."""

    channel: str
    topic: str
    user_properties: tuple[tuple[str, str], ...]


def came_from(letter: Message) -> Origin | None:
    """Return where a dead letter comes from, None if the message is none."""
    own = letter.user_properties[-len(_NAMES) :]
    if tuple(name for name, _ in own) != _NAMES:
        return None
    (_, topic), (_, channel), _ = own
    try:
        check_topic_name(topic)
    except ProtocolError:  # a publisher's, which is no dead letter
        return None
    return Origin(channel, topic, letter.user_properties[: -len(_NAMES)])


class DeadLetters:
    """Publishes them to the dead letter topic of a channel, or drops them without one.

    `channel` is the session whose journal has them.
    """

    __slots__ = ("_alarm", "_channel", "_figures", "_letters", "_publish", "_waiting", "settings")

    def __init__(
        self,
        channel: Session,
        settings: ChannelSettings,
        figures: ChannelFigures,
        waiting: Waiting,
        alarm: Alarm,
        publish: Publish,
    ) -> None:
        self._channel = channel
        self.settings = settings
        self._figures = figures
        self._waiting = waiting
        self._alarm = alarm
        self._publish = publish
        self._letters: list[Offer] = []

    def add(self, letter: Offer) -> None:
        """Accept one message; `send` publishes it."""
        self._letters.append(letter)
        self._alarm.set(0.0)

    def clear(self) -> None:
        """Forget all of them."""
        self._letters.clear()

    def send(self, instant: Instant) -> None:
        """Publish all of them; a refused one goes to a consumer once more, later."""
        letters, self._letters = self._letters, []
        for letter in letters:
            if self._bury(letter, instant):
                self._channel.forget(letter.span, letter.span.first, letter.span.count)
            else:
                again = Offer(letter.span, max(letter.attempts - 1, 0), None)
                self._waiting.put(again, instant.monotonic + AGAIN_SECONDS)
                self._alarm.set(instant.monotonic + AGAIN_SECONDS)

    def _bury(self, letter: Offer, instant: Instant) -> bool:
        settings, figures = self.settings, self._figures
        message = letter.span.publication.new_message(letter.span.first)
        if settings.dead_letter_topic is None:
            figures.dropped += 1
            logger.warning(
                "channel %s: a message on %.80r is dropped%s after %d attempts",
                settings.share_name,
                message.topic,
                " as too large for its consumers" if letter.above else "",
                letter.attempts,
            )
            return True
        message.user_properties = (
            *message.user_properties,
            *zip(_NAMES, (message.topic, settings.share_name, str(letter.attempts)), strict=True),
        )
        message.topic, message.retain = settings.dead_letter_topic, False
        message.message_expiry = None  # it may have passed, or pass before anybody looks
        if self._publish(message, instant) >= FAILURE:
            return False
        figures.dead_lettered += 1
        return True
