"""The configured channels, and the commands for them."""

import json
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from gateway.app.control import Control
from gateway.app.parts import Core, Run, Storage
from gateway.broker.channels.channels import MAXIMUM_PAUSED_FILTERS, Channels
from gateway.broker.channels.stamps import ID_DIGITS
from gateway.broker.instant import Instant
from gateway.config.errors import ConfigurationError, raise_all
from gateway.config.reader import Reader
from gateway.counters import Counters
from gateway.mqtt.errors import ProtocolError
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.topics import SHARED_PREFIX, check_topic_filter, topic_matches
from gateway.settings.channel import ChannelSettings
from gateway.storage.state.note import is_noted, note, note_of, noted_parts
from gateway.telemetry.sys_topics import SysTopics
from gateway.where.language.errors import WhereError

if TYPE_CHECKING:
    from gateway.broker.channels.channel import Channel

FIGURES = "tidegate/channels/"
"""Prefix of channels' figures, before the channel's name."""


class ChannelFigures:
    """Shows the figures of every channel under `$SYS`."""

    def __init__(self, channels: Channels, counters: Counters) -> None:
        self._channels = channels
        self._counters = counters
        self._shown: set[str] = set()

    def refresh(self, now: float) -> None:
        """Set the figures of every channel, and remove those of deleted channels."""
        counters, channels = self._counters, self._channels
        gone, self._shown = self._shown, set()
        # of several with one name: the one that the name stands for
        shown = {each.settings.share_name: each for each in channels}
        if len(shown) < len(channels):
            shown = {name: channels.named(name)[0] for name in shown}
        for channel in shown.values():
            for name, value in _figures(channel, now).items():
                full = f"{FIGURES}{channel.settings.share_name}/{name}"
                counters.set(full, value)
                self._shown.add(full)
        for name in gone - self._shown:
            counters.forget(name)
        counters.set("tidegate/channels", len(channels))
        counters.set("tidegate/channels_refused", channels.refused)
        counters.set("tidegate/channels_paused_filters", json.dumps([*channels.paused_filters]))


def _levels(channel: "Channel") -> dict[str, int]:
    """Return the depth of each level of a channel with priorities."""
    if channel.levels is None:
        return {}
    return {f"depth_{each.level.name.lower()}": len(each.waiting) for each in channel.every_level}


def _figures(channel: "Channel", now: float) -> dict[str, int | float | str]:
    figures, settings = channel.figures, channel.settings
    state = "paused" if channel.waiting.paused else "open"
    return {
        "state": state,
        "kind": "temporary" if settings.in_memory else "durable",
        "filter": settings.topic_filter,
        "consumers": len(channel.consumers),
        "depth": channel.depth,
        "bytes": channel.bytes,
        "put_aside": channel.put_aside,
        "in_flight": channel.in_flight,
        "attempts": channel.attempts,
        "oldest_seconds": round(channel.oldest(now), 1),
        **_levels(channel),
        "received": figures.received,
        "delivered": figures.delivered,
        "acknowledged": figures.acknowledged,
        "unacknowledged": figures.unacknowledged,
        "bad_priority": figures.bad_priority,
        "replaced": figures.replaced,
        "requeued": figures.requeued,
        "timed_out": figures.timed_out,
        "dead_lettered": figures.dead_lettered,
        "dropped": figures.dropped,
        "expired": figures.expired,
        "filtered": figures.filtered,
        "outside_size": figures.outside_size,
        "too_large": figures.too_large,
        "latency_ms_p50": round(1000 * figures.latency(50), 1),
        "latency_ms_p99": round(1000 * figures.latency(99), 1),
    }


logger = logging.getLogger(__name__)

PART = "channel"
"""The part of `$CONTROL/tidegate/` with the commands for channels."""

CREATED = "channel_created"
"""Notes of the keys of channels that were created by a command, as JSON."""

PAUSED = "channel_paused"
PAUSED_FILTER = "channel_filter_paused"

OWN_COMMANDS = ("touch", "requeue")
"""Commands of a consumer for what it has itself, which nobody else needs to know of."""

FILTER_COMMANDS = ("pause", "resume")
"""Queries without a channel's name, with a topic filter as payload."""

LATEST = 86_400
"""Seconds by which `requeue` may delay messages: a day."""


def read_channel(name: str, text: str) -> tuple[ChannelSettings, str]:
    """Return a channel's settings, and its keys as JSON.

    The text is a topic filter, or keys of `[[channel]]` as JSON. Raises ConfigurationError.
    """
    reader = Reader("channel")
    keys: object = {"filter": text}
    if text.startswith("{"):
        try:
            keys = json.loads(text)
        except ValueError as error:
            raise ConfigurationError("channel", name, text[:80], f"JSON: {error}") from None
    if isinstance(keys, dict) and name:
        keys["name"] = name
    settings = reader.read(ChannelSettings, keys)
    raise_all(reader.mistakes)
    topic_filter, topic = settings.topic_filter, settings.dead_letter_topic
    try:
        check_topic_filter(topic_filter)
    except ProtocolError as error:
        reader.mistake("filter", topic_filter, error.reason)
    if topic_filter.startswith(SHARED_PREFIX):
        reader.mistake("filter", topic_filter, "a topic filter, not shared")
    for key in ("priority", "last_value"):
        expression = getattr(settings, key)
        if expression is not None:
            allowed = _fault(expression)
            if allowed:
                reader.mistake(key, expression, allowed)
    if topic is not None and topic_matches(topic_filter, topic):
        reader.mistake("dead_letter_topic", topic, "a topic that is not the channel's own")
    raise_all(reader.mistakes)
    return settings, json.dumps(keys, sort_keys=True)


def _fault(expression: str) -> str:
    """Return what is wrong with an expression, "" if nothing is."""
    from gateway.where.compile import compile_value  # in memory where it is used

    try:
        compile_value(expression)
    except WhereError as error:
        return f"position {error.position}: {error.message}"
    return ""


class ChannelCommands:
    """Executes commands for channels."""

    def __init__(
        self, run: Run, storage: Storage, core: Core, control: Control, sys_topics: SysTopics
    ) -> None:
        self._database, self._writer, _ = storage
        self._core = core
        self._control = control
        self._sys_topics = sys_topics
        self._channels = channels = core.broker.channels
        self._created: dict[str, str] = {}  # by name: the note
        self._commands: dict[str, Callable[[Channel, Message], object]] = {
            "pause": self._pause,
            "resume": self._resume,
            "empty": lambda channel, _: channels.empty(channel),
            "delete": self._delete,
        }
        control.answer_below(PART, self.receive)
        figures = ChannelFigures(channels, run.counters)
        sys_topics.refresh.append(lambda: figures.refresh(run.clock.monotonic()))

    def receive(self, rest: str, message: Message) -> ReasonCode:
        """Execute `<name>/<command>`, or one for a topic filter; others are refused with 0x83."""
        if rest in FILTER_COMMANDS:
            return self._of_filter(rest, message)
        name, _, word = rest.rpartition("/")
        command, found = self._commands.get(word), self._channels.named(name)
        if word == "create":
            return self._create(name, message)
        if word == "delete" and name in self._created and not found:
            self._forget_created(name)  # a temporary one that has not begun
            return ReasonCode.SUCCESS
        if word in OWN_COMMANDS and found:
            return self._of_own(word, found, message)
        if command is None or not found:
            known = ", ".join(("create", *self._commands, *OWN_COMMANDS))
            logger.warning("unknown channel or command %.80r; commands are %s", rest, known)
            return ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR
        self._control.note_order(f"channel {name}: {word}", message.client_id)
        if word == "delete":  # first those with another filter than the name has now
            found = [each for each in found if self._channels.is_left(each)] or found
        for channel in found:
            command(channel, message)
        return ReasonCode.SUCCESS

    def _create(self, name: str, message: Message) -> ReasonCode:
        """Begin a channel, or change its limits; the payload has its filter, or keys as JSON."""
        try:
            settings, text = read_channel(name, message.text() or "")
            fault = self._channels.create(settings)
        except ConfigurationError as error:
            fault = str(error)
        if fault:
            logger.warning("channel %.80r is not created: %s", name, fault)
            return ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR
        self._forget_note(name)
        self._created[name] = text
        note(self._writer, note_of(CREATED, text))
        self._control.note_order(f"channel {name}: create", message.client_id)
        return ReasonCode.SUCCESS

    def _forget_created(self, name: str) -> None:
        self._channels.forget_created(name)
        self._forget_note(name)

    def _forget_note(self, name: str) -> None:
        if name in self._created:
            note(self._writer, note_of(CREATED, self._created.pop(name)), there=False)

    async def restore_created(self) -> None:
        """Begin the channels that were created in an earlier run, unless the configuration does."""
        for text in await noted_parts(self._database, CREATED):
            try:
                settings, _ = read_channel("", text)
                fault = self._channels.create(settings)
                self._created[settings.share_name] = text
            except ConfigurationError as error:  # of another version
                fault = str(error)
            if fault:
                logger.warning("channel created by a command is skipped: %s", fault)

    async def restore_pauses(self) -> None:
        """Pause the channels that were paused in an earlier run."""
        for channel in self._channels:
            name = channel.settings.share_name
            if await is_noted(self._database, note_of(PAUSED, name)):
                logger.warning(
                    "channel %s: paused before the start; `tidegate channel resume %s` ends that",
                    *(name, name),
                )
                self._channels.pause(channel)

        for topic_filter in await noted_parts(self._database, PAUSED_FILTER):
            logger.warning("channels: topic filter %.80r paused before the start", topic_filter)
            self._channels.pause_filter(topic_filter)

    def _of_filter(self, word: str, message: Message) -> ReasonCode:
        """Pause or resume a topic filter; an invalid one, or one too many, is refused."""
        topic_filter = message.text() or ""
        try:
            check_topic_filter(topic_filter)
        except ProtocolError as error:
            logger.warning("channels: %s of %.80r: %s", word, topic_filter, error.reason)
            return ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR
        pauses = word == "pause"
        change = self._channels.pause_filter if pauses else self._channels.resume_filter
        if not change(topic_filter):
            why = f"{MAXIMUM_PAUSED_FILTERS} are" if pauses else "it is not"
            logger.warning("channels: %s of %.80r: %s paused", word, topic_filter, why)
            return ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR
        note(self._writer, note_of(PAUSED_FILTER, topic_filter), there=pauses)
        self._control.note_order(f"channels: {word} {topic_filter[:80]!r}", message.client_id)
        return ReasonCode.SUCCESS

    def _pause(self, channel: "Channel", _: Message) -> None:
        if not channel.settings.in_memory:
            note(self._writer, note_of(PAUSED, channel.settings.share_name))
        self._channels.pause(channel)

    def _resume(self, channel: "Channel", _: Message) -> None:
        note(self._writer, note_of(PAUSED, channel.settings.share_name), there=False)
        self._channels.resume(channel)

    def _delete(self, channel: "Channel", _: Message) -> None:
        name = channel.settings.share_name
        note(self._writer, note_of(PAUSED, name), there=False)
        self._forget_created(name)
        self._channels.delete(channel)
        figures = f"{FIGURES}{name}/"  # removed once this message has been handled

        def forget(_key: object, _instant: Instant) -> None:
            self._sys_topics.forget(figures)

        self._core.broker.deadlines.set(figures, 0.0, forget)

    def _of_own(self, word: str, found: "list[Channel]", message: Message) -> ReasonCode:
        """Touch or requeue messages that the client itself has: all, or the one of an `id`."""
        client_id, now = message.client_id or "", self._core.turn.instant.monotonic
        levels = [level for channel in found for level in channel.every_level]
        try:
            only, delay = _id_and_delay(message.payload[:40].decode(errors="replace"))
            if word == "touch":
                count = sum(each.deliveries.touch(client_id, now, only) for each in levels)
            else:
                second = now + delay if delay else 0.0
                count = sum(each.requeue(client_id, second, only) for each in levels)
        except ValueError:
            line = "%s %.40r of client %.80r: an id of 16 digits, 0 to %d seconds, or both"
            logger.warning(line, word, message.text(), client_id, LATEST)
            return ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR
        if only is not None and not count:
            logger.warning("%s: client %.80r has no message %016x", word, client_id, only)
            return ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR
        return ReasonCode.SUCCESS


def _id_and_delay(text: str) -> tuple[int | None, int]:
    """Return the identifier and the seconds in a payload, each if it is there."""
    words = text.split()
    only = int(words.pop(0), 16) if words and len(words[0]) == ID_DIGITS else None
    number = "".join(words[:1]) or "0"
    if len(words) > 1 or not (number.isascii() and number.isdecimal()) or int(number) > LATEST:
        raise ValueError(text)
    return only, int(number)
