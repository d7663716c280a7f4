"""The alarm for messages of channels that time out again and again."""

import logging
from typing import TYPE_CHECKING

from gateway.app.parts import Run
from gateway.broker.channels.channels import Channels

if TYPE_CHECKING:
    from gateway.broker.channels.channel import Channel

logger = logging.getLogger(__name__)

ALARM = "channel_timeouts"

CHECK_SECONDS = 1.0
"""Seconds between two checks."""

QUIET_SECONDS = 60.0
"""Seconds without such a timeout after which the alarm ends; two timeouts if these are longer."""


class ChannelTimeouts:
    """Raises an alarm, with one log line, while messages of a channel time out again and again."""

    def __init__(self, run: Run, channels: Channels) -> None:
        self._run = run
        self._channels = channels
        self._counted: dict[Channel, int] = {}
        # the monotonic second at which the alarm ends, and its text
        self._raised: dict[Channel, tuple[float, str]] = {}
        self.text = ""

    def start(self) -> None:
        """Check at each interval while the gateway runs."""
        self._run.every(CHECK_SECONDS, self.check)

    def check(self) -> None:
        """Raise, renew or end the alarm by what timed out since the last check."""
        now, counted, raised = self._run.clock.monotonic(), self._counted, self._raised
        channels = [*self._channels]
        for channel in channels:
            count = channel.figures.timed_out_again
            if count > counted.get(channel, 0):
                quiet = max(QUIET_SECONDS, 2 * channel.settings.inflight_timeout)
                text = _timeouts(channel)
                if channel not in raised:
                    logger.warning("%s", text)
                raised[channel] = (now + quiet, text)
            counted[channel] = count
        for channel in {*counted} - {*channels}:
            del counted[channel]
        self._raised = {
            channel: found
            for channel, found in raised.items()
            if found[0] > now and channel in counted
        }
        text = "; ".join([each for _, each in self._raised.values()])
        if text != self.text:
            self.text = text
            self._run.alarm(ALARM, text)


def _timeouts(channel: "Channel") -> str:
    settings = channel.settings
    return (
        f"channel {settings.share_name}: messages repeatedly time out, and {_end(channel)}: "
        "consumers hang, or need more than the inflight_timeout of "
        f"{settings.inflight_timeout:g} s"
    )


def _end(channel: "Channel") -> str:
    """Return what becomes of messages that time out, as it is after the latest timeouts."""
    settings = channel.settings
    place, last = settings.dead_letter_topic, settings.max_attempts
    if place is not None and last:
        return f"go to {place} after attempt {last}"
    if any(each.oldest for each in channel.deliveries):
        return "stay with their consumer, since no other can have them"
    return f"are dropped after attempt {last}" if last else "are delivered without end"
