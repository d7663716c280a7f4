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
        self._until: dict[Channel, float] = {}  # monotonic seconds at which the alarm ends
        self.text = ""

    def start(self) -> None:
        """Check at each interval while the gateway runs."""
        self._run.every(CHECK_SECONDS, self.check)

    def check(self) -> None:
        """Raise, renew or end the alarm by what timed out since the last check."""
        now, counted, until = self._run.clock.monotonic(), self._counted, self._until
        channels = [*self._channels]
        for channel in channels:
            count = channel.figures.timed_out_again
            if count > counted.get(channel, 0):
                quiet = max(QUIET_SECONDS, 2 * channel.settings.inflight_timeout)
                if channel not in until:
                    logger.warning("%s", _timeouts(channel))
                until[channel] = now + quiet
            counted[channel] = count
        for channel in {*counted} - {*channels}:
            del counted[channel]
        self._until = {
            channel: end for channel, end in until.items() if end > now and channel in counted
        }
        text = "; ".join([_timeouts(each) for each in self._until])
        if text != self.text:
            self.text = text
            self._run.alarm(ALARM, text)


def _timeouts(channel: "Channel") -> str:
    settings = channel.settings
    end = "are delivered without end"
    if settings.max_attempts:
        place = settings.dead_letter_topic
        end = "are dropped" if place is None else f"go to {place}"
        end += f" after attempt {settings.max_attempts}"
    return (
        f"channel {settings.share_name}: messages time out again and again, and {end}: consumers "
        f"hang, or need more than the inflight_timeout of {settings.inflight_timeout:g} s"
    )
