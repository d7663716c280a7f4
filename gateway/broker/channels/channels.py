"""All channels of a gateway: their creation, restart, timers and end."""

import logging
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, cast

from gateway.access.rule import covers, overlaps
from gateway.broker.deadlines import Deadlines
from gateway.broker.instant import Instant
from gateway.broker.own_names import PREFIX
from gateway.broker.shares import Shares
from gateway.broker.store import Store
from gateway.mqtt.topics import QUEUE_PREFIX, SHARED_PREFIX, split_shared
from gateway.routing.router import Router
from gateway.routing.subscriptions.subscription import Subscription
from gateway.session.restored import RestoredSession
from gateway.session.session import Session
from gateway.settings.broker import NEVER, BrokerSettings, Unconfigured
from gateway.settings.channel import ChannelSettings
from gateway.settings.when_full import WhenFull

if TYPE_CHECKING:
    from gateway.broker.channels.channel import Channel

logger = logging.getLogger(__name__)

COMPARED_NAMES = 100
"""Channels whose names are compared with a name that is none of them: some 2 ms."""

COMPARED_CHARACTERS = 64
"""Characters of a name up to which it is compared: the work grows with the square of them."""

MAXIMUM_PAUSED_FILTERS = 100
"""Topic filters that may be paused; each is compared with every message."""


class EveryLevel:
    """All queues of channels: those of levels, too."""

    __slots__ = ("_channels",)

    def __init__(self, channels: "Channels") -> None:
        self._channels = channels

    def __iter__(self) -> "Iterator[Channel]":
        return chain.from_iterable(each.every_level for each in self._channels)


class Channels:
    """The channels by their consumers' topic filter, `$share/<name>/<filter>`.

    Durable channels of the configuration exist from the start. Temporary ones exist from their
    first consumer to their last. If the configuration makes other shared subscriptions channels,
    these begin with their first consumer, too; `refused` counts those above the limit, which stay
    shared subscriptions.
    """

    __slots__ = (
        "_by_filter",
        "_created",
        "_deadlines",
        "_ending",
        "_make",
        "_makers",
        "_router",
        "_sessions",
        "_settings",
        "_shares",
        "_store",
        "_temporary",
        "_when_full",
        "every_level",
        "paused_filters",
        "refused",
    )

    def __init__(
        self,
        settings: BrokerSettings,
        make: "Callable[..., Channel]",
        router: Router,
        deadlines: Deadlines,
        shares: Shares,
        store: Store,
        sessions: Mapping[str, Session],
        when_full: WhenFull,
    ) -> None:
        self._settings = settings
        self._make = make
        self._router = router
        self._deadlines = deadlines
        self._shares = shares
        self._store = store
        self._sessions = sessions
        self._when_full = when_full  # of channels that are not configured
        self._by_filter: dict[str, Channel] = {}
        self._created: dict[str, ChannelSettings] = {}  # by name
        self._ending: dict[Channel, None] = {}  # temporary ones
        self._makers: dict[Channel, str] = {}  # clients to whose share the unconfigured ones count
        self.every_level = EveryLevel(self)
        self.paused_filters: dict[str, None] = {}
        self.refused = 0
        router.on_add.append(self._on_subscribed)
        router.on_discard.append(self._on_unsubscribed)
        self._temporary = {
            _shared_filter(each): each for each in settings.channels if each.in_memory
        }
        for each in settings.channels:
            if not each.in_memory:
                self._begin(each)

    def change(self, settings: BrokerSettings, when_full: WhenFull) -> None:
        """Apply the channels that the settings name.

        A durable channel that is no longer named stays with its messages, as after a restart, until
        somebody deletes it; a temporary one until its last consumer is gone. A channel that changes
        between durable and temporary begins again (`in_the_way`).
        """
        self._settings, self._when_full = settings, when_full
        for each in settings.channels:
            self._created.pop(each.share_name, None)
        described = (*settings.channels, *self._created.values())
        named = {_shared_filter(each): each for each in described}
        self._temporary = {name: each for name, each in named.items() if each.in_memory}
        for topic_filter, channel in list(self._by_filter.items()):
            now, before = named.get(topic_filter), channel.settings
            if now is None:
                if not before.in_memory:
                    self._leave(channel)
                continue
            if channel in self._makers:
                self._shares.channels.remove(self._makers.pop(channel))
            if now.in_memory == before.in_memory:
                self._change(channel, now)
            else:
                self.delete(channel)
        for topic_filter, now in named.items():
            if topic_filter not in self._by_filter:
                self._begin_among_consumers(now)

    def _leave(self, channel: "Channel") -> None:
        """Let a channel exist that is not named any more, or has another topic filter now."""
        before = channel.settings
        left = self._of_consumers(before.share_name, before.topic_filter)
        if left != before:
            self._change(channel, left)
            logger.warning(
                "channel %s with the filter %s is not configured any more: it exists, with %d "
                "messages, until `tidegate channel delete %s` (tidegate docs channels)",
                *(before.share_name, before.topic_filter, channel.depth + channel.in_flight),
                before.share_name,
            )

    def _change(self, channel: "Channel", settings: ChannelSettings) -> None:
        for each in channel.every_level:
            each.change(settings)
        self._set_levels(channel)

    def _set_levels(self, channel: "Channel", *, restored: bool = False) -> None:
        """Give a channel levels, for good, if it has priorities or `restored` messages of some."""
        settings, levels = channel.settings, channel.levels
        if levels is None:
            if settings.priority is None and not restored:
                return
            from gateway.broker.channels.levels import add_levels  # in memory where it is used

            levels = add_levels(channel, lambda level: self._make(settings, level, channel.figures))
            for each in levels.channels:
                if channel.persistent and each is not channel:
                    self._persist(each)
        levels.read_by(settings.priority)

    def in_the_way(self, settings: BrokerSettings) -> "list[Channel]":
        """Return the channels that these settings make durable or temporary: they lose messages."""
        found = ((each, self._by_filter.get(_shared_filter(each))) for each in settings.channels)
        return [
            channel
            for each, channel in found
            if channel is not None
            and channel.settings.in_memory != each.in_memory
            and channel.depth + channel.in_flight
        ]

    def create(self, settings: ChannelSettings) -> str:
        """Begin a channel that the configuration does not have, or change its limits.

        Return why that is impossible, "" if it was done.
        """
        name = settings.share_name
        if any(each.share_name == name for each in self._settings.channels):
            return "the configuration has a channel of this name"
        for channel in self.named(name):
            if channel.settings.topic_filter != settings.topic_filter:
                return f"there is one with the filter {channel.settings.topic_filter}"
        if self.in_the_way(BrokerSettings(channels=(settings,))):
            return "it has messages, which would be lost: `tidegate channel empty` first"
        topic_filter = _shared_filter(settings)
        if topic_filter not in self._by_filter and len(self) >= self._settings.maximum_channels:
            return f"there are {len(self):,} channels, as many as may be"
        self._created[name] = settings
        self.change(self._settings, self._when_full)
        return ""

    def forget_created(self, name: str) -> None:
        """Let no channel of this name begin again that `create` made."""
        created = self._created.pop(name, None)
        if created is not None:
            self._temporary.pop(_shared_filter(created), None)

    def start(self) -> None:
        """Make channels durable that are configured so and were not restored."""
        for channel in self.every_level:
            if not channel.settings.in_memory and not channel.persistent:
                self._persist(channel)

    def __iter__(self) -> "Iterator[Channel]":
        return iter(list(self._by_filter.values()))

    def __len__(self) -> int:
        return len(self._by_filter)

    def named(self, name: str) -> "list[Channel]":
        """Return the channels of this name: one, or several with different topic filters.

        The one that the configuration or `create` has is the first.
        """
        found = [channel for channel in self if channel.settings.share_name == name]
        return found if len(found) < 2 else sorted(found, key=self.is_left)

    def is_left(self, channel: "Channel") -> bool:
        """Return whether neither the configuration nor `create` has it, with this topic filter."""
        described = (*self._settings.channels, *self._created.values())
        return _shared_filter(channel.settings) not in map(_shared_filter, described)

    def full(self, session: Session, topic_filter: str) -> bool:
        """Return whether a channel has as many consumers as it may, this session not among them."""
        if not topic_filter.startswith(SHARED_PREFIX):
            return False  # most subscriptions: only shared ones can be of a channel
        channel = self._of(topic_filter)
        if channel is None or self._router.find(session, topic_filter) is not None:
            return False
        return len(channel.consumers) >= channel.settings.maximum_consumers

    def filter_of_queue(self, topic_filter: str) -> str | None:
        """Return what `$queue/<name>` stands for, `$share/<name>/<filter>`; None if unknown.

        `$queue/<name>/<part>` stands for a part of the channel's topics.
        """
        name, _, part = topic_filter.removeprefix(QUEUE_PREFIX).partition("/")
        configured = [each for each in self._temporary.values() if each.share_name == name]
        found = configured or [each.settings for each in self.named(name)]
        if not found or (part and not covers(found[0].topic_filter, part)):
            return None
        return f"{SHARED_PREFIX}{name}/{part}" if part else _shared_filter(found[0])

    def near_miss(self, session: Session, topic_filter: str) -> str:
        """Log and return whose channel a shared subscription hardly misses, "" if nobody's.

        It has a channel's name but other topics, or a channel's topics and nearly its name.
        """
        if self._of(topic_filter) is not None:
            return ""
        name, own = split_shared(topic_filter)
        compared = 0
        for channel in self._by_filter.values():
            found = channel.settings
            if found.share_name == name:
                text = f"the channel {name} has the filter {found.topic_filter}"
            elif compared < COMPARED_NAMES and overlaps(found.topic_filter, own):
                compared += 1
                if not _is_similar(found.share_name, name or ""):
                    continue
                text = f"there is a channel {found.share_name}, but none {name}"
            else:
                continue
            text = f"{topic_filter[:80]}: {text}; this subscription gets none of its messages"
            logger.warning("client %.80r: %s", session.client_id, text)
            return text
        return ""

    def requires_acknowledgements(self, topic_filter: str) -> bool:
        """Return whether a topic filter belongs to a durable channel, or begins one."""
        if not topic_filter.startswith(SHARED_PREFIX):
            return False
        channel = self._of(topic_filter)
        if channel is not None:
            return not channel.settings.in_memory
        return (
            self._temporary_for(topic_filter) is None
            and self._settings.unconfigured_channels is Unconfigured.DURABLE
            and len(self) < self._settings.maximum_channels
        )

    def restore(self, stored: RestoredSession) -> None:
        """Restore a channel of an earlier run, even if it is no longer configured."""
        name, _, topic_filter = stored.client_id.removeprefix(PREFIX).partition("/")
        name, _, level = name.partition("#")
        shared_filter = f"{SHARED_PREFIX}{name}/{topic_filter}"
        if shared_filter in self._temporary:  # it was durable before
            stored.journal.close([each.span for each in stored.spans])
            return
        channel = self._by_filter.get(shared_filter)
        if channel is None:
            channel = self._begin(self._of_consumers(name, topic_filter))
        if level:
            self._set_levels(channel, restored=True)
        for each in channel.every_level:
            if each.client_id == stored.client_id:
                each.restore(stored)

    def rules_changed(self) -> None:
        """Offer messages again that nobody could read: access rules have changed."""
        for channel in self.every_level:
            channel.offer_again()

    def connected(self, session: Session) -> None:
        """Offer messages again that nobody could read: a consumer has another connection."""
        for channel in [each for each in self if each in session.consumes]:
            _offer_again(channel)

    def pause(self, channel: "Channel") -> None:
        """Dispatch nothing until `resume`; new messages are queued."""
        for each in channel.every_level:
            each.waiting.paused = True

    def resume(self, channel: "Channel") -> None:
        """Dispatch again, from the next turn on."""
        for each in channel.every_level:
            each.waiting.paused = False
            each.go_on()

    def pause_filter(self, topic_filter: str) -> bool:
        """Dispatch no message of these topics, in any channel, until `resume_filter`.

        Other messages overtake them. Returns False if too many topic filters are paused.
        """
        if topic_filter not in self.paused_filters:
            if len(self.paused_filters) >= MAXIMUM_PAUSED_FILTERS:
                return False
            self.paused_filters[topic_filter] = None
        return True

    def resume_filter(self, topic_filter: str) -> bool:
        """Dispatch messages of these topics again; return False if they were not paused."""
        if topic_filter not in self.paused_filters:
            return False
        del self.paused_filters[topic_filter]
        for channel in self.every_level:
            channel.go_on()
        return True

    def empty(self, channel: "Channel") -> None:
        """Drop all messages that wait or are in flight."""
        for each in channel.every_level:
            persistent = each.persistent
            if persistent:
                each.journal.close(each.undelivered())
            each.discard()
            if persistent:
                self._persist(each)

    def delete(self, channel: "Channel") -> None:
        """Delete a channel with its messages; a configured one exists again after a restart."""
        for each in channel.every_level:
            if each.persistent:
                each.journal.close(each.undelivered())
            each.ended = True
            each.discard()
            each.alarm.stop()
        topic_filter = _shared_filter(channel.settings)
        del self._by_filter[topic_filter]
        self._ending.pop(channel, None)
        if channel in self._makers:
            self._shares.channels.remove(self._makers.pop(channel))
        self._router.detach(topic_filter)
        for session in self._sessions.values():
            if channel in session.consumes:
                session.consumes = tuple(each for each in session.consumes if each is not channel)

    def _of(self, topic_filter: str) -> "Channel | None":
        """Return the channel of consumers with this topic filter, which may be a part of its."""
        return cast("Channel | None", self._router.channel(topic_filter))

    def _temporary_for(self, topic_filter: str) -> ChannelSettings | None:
        """Return the temporary channel that begins with a consumer of this topic filter, if any."""
        settings = self._temporary.get(topic_filter)
        if settings is None and self._temporary:
            name, part = split_shared(topic_filter)
            for each in self._temporary.values():
                if each.share_name == name and covers(each.topic_filter, part):
                    return each
        return settings

    def _begin(self, settings: ChannelSettings, *, is_open: bool = True) -> "Channel":
        topic_filter = _shared_filter(settings)
        channel = self._by_filter[topic_filter] = self._make(settings)
        group = self._router.attach(topic_filter, channel, is_open=is_open)
        channel.consumers.serve(group)
        channel.waiting.paused_filters = self.paused_filters
        if settings.in_memory:
            self._ending[channel] = None
        self._set_levels(channel)
        return channel

    def _begin_among_consumers(self, settings: ChannelSettings) -> None:
        """Begin a channel whose shared subscription may have members already."""
        channel = self._begin(settings)
        for member in channel.consumers.members:
            session = cast("Session", member.subscriber)
            session.consumes = (*session.consumes, channel)
        if not settings.in_memory:
            self._persist_all(channel)
        elif not len(channel.consumers):
            self.delete(channel)

    def _persist_all(self, channel: "Channel") -> None:
        for each in channel.every_level:
            self._persist(each)

    def _persist(self, channel: "Channel") -> None:
        """Store the channel and its messages from now on."""
        channel.persist_in(self._store.open(channel.client_id, 0.0))
        channel.expiry_interval = NEVER
        channel.journal.store(NEVER, None)

    def _on_subscribed(self, _: int, subscription: Subscription) -> None:
        """Add a new consumer to its channel, which begins with it if there is none."""
        topic_filter = subscription.topic_filter
        if not topic_filter.startswith(SHARED_PREFIX):
            return
        session = cast("Session", subscription.subscriber)
        channel = self._of(topic_filter)
        if channel is None:
            channel = self._begin_with_consumer(topic_filter, session)
        if channel is None:
            return
        if channel not in session.consumes:
            session.consumes = (*session.consumes, channel)
        _offer_again(channel)  # also if the session had a part of the topics

    def _begin_with_consumer(self, topic_filter: str, session: Session) -> "Channel | None":
        """Begin and return a channel with its first consumer, None if the filter is no channel."""
        shares, settings = self._shares, self._temporary_for(topic_filter)
        configured = settings is not None
        if settings is None:
            kind = self._settings.unconfigured_channels
            if kind is Unconfigured.SHARED:
                return None
            name, shared_filter = split_shared(topic_filter)
            temporary = kind is Unconfigured.TEMPORARY
            settings = self._of_consumers(name or "", shared_filter, temporary=temporary)
        if len(self) >= self._settings.maximum_channels or (
            not configured and shares.refuse(shares.channels, session.client_id, session.holder)
        ):
            self.refused += 1
            return None
        channel = self._begin(settings, is_open=configured)
        if not configured:
            shares.channels.add(session.client_id, session.holder)
            self._makers[channel] = session.client_id
        if not settings.in_memory:
            self._persist_all(channel)
        return channel

    def _of_consumers(
        self, name: str, topic_filter: str, *, temporary: bool = False
    ) -> ChannelSettings:
        """Return what a channel is that nobody has configured: publishers do not wait for it."""
        return ChannelSettings(name, topic_filter, temporary=temporary, when_full=self._when_full)

    def _on_unsubscribed(self, _number: int, _subscription: Subscription) -> None:
        """End temporary channels without consumers, after the subscription was removed."""
        if any(not len(each.consumers) for each in self._ending):
            self._deadlines.set("temporary channels", 0.0, self._end_temporary)

    def _end_temporary(self, _key: str, _instant: Instant) -> None:
        for channel in list(self._ending):
            if not len(channel.consumers):
                self.delete(channel)


def _offer_again(channel: "Channel") -> None:
    for each in channel.every_level:
        each.offer_again()


def _is_similar(one: str, other: str) -> bool:
    """Return whether one of two names may be a misspelling of the other."""
    if max(len(one), len(other)) > COMPARED_CHARACTERS:
        return False
    from difflib import SequenceMatcher

    return SequenceMatcher(None, one.casefold(), other.casefold()).ratio() >= 0.75


def _shared_filter(settings: ChannelSettings) -> str:
    return f"{SHARED_PREFIX}{settings.share_name}/{settings.topic_filter}"
