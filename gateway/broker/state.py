"""The state of the broker, which its parts share: objects made in order."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from gateway.access.listeners import Listeners
from gateway.broker.channels.channels import Channels
from gateway.broker.client import Client
from gateway.broker.client_classes import DeliveryClasses, DurabilityClasses
from gateway.broker.connecting.connection_info import ConnectionInfo
from gateway.broker.connecting.connection_lines import ConnectionLines
from gateway.broker.connecting.failed_logins import FailedLogins
from gateway.broker.connecting.keep_alive import KeepAlive
from gateway.broker.deadlines import Deadlines
from gateway.broker.memory_budget import MemoryBudget
from gateway.broker.notices import Notices
from gateway.broker.publishing import delays
from gateway.broker.publishing.expiry import Expiry
from gateway.broker.publishing.inline import Publish
from gateway.broker.publishing.refusals import Refusals
from gateway.broker.publishing.topic_admissions import TopicAdmissions
from gateway.broker.publishing.topic_memory import TopicMemory
from gateway.broker.shares import Shares
from gateway.broker.store import Durability, Store
from gateway.broker.subscribing.conflated import Conflation
from gateway.broker.subscribing.ended_subscriptions import EndedSubscriptions
from gateway.broker.subscribing.expressions import Expressions, SubscriptionFilters
from gateway.broker.subscribing.replays import Replays
from gateway.counters import Counters
from gateway.mqtt.aliases.topic_aliases import InboundFigures
from gateway.mqtt.codec.publish import PropertyCache
from gateway.mqtt.publication import Publication
from gateway.routing.budget import Budget
from gateway.routing.retained.retained import RetainedMessages
from gateway.routing.router import Router
from gateway.session.session import Session
from gateway.session.traffic import Traffic
from gateway.settings.broker import BrokerSettings, Unconfigured

if TYPE_CHECKING:
    from gateway.broker.channels.channel import Channel

from gateway.mqtt.aliases.topic_aliases import AliasBudget
from gateway.mqtt.topics import TopicLimits
from gateway.session.incoming import MAXIMUM_INCOMING
from gateway.session.limits import SessionLimits
from gateway.session.queue.memory import MAXIMUM_BYTES_TOTAL, QueueMemory


def channel_class() -> "type[Channel]":
    """Return what channels are made of, in memory only where there are any."""
    from gateway.broker.channels.channel import Channel

    return Channel


class State:
    """The parts of a broker; each knows only the parts it was made with.

    A packet handler gets the state, or the parts of it that it uses.
    """

    __slots__ = (
        "admissions",
        "alias_budget",
        "budget",
        "channels",
        "clients",
        "conflation",
        "connection_lines",
        "connections",
        "connects",
        "counters",
        "deadlines",
        "delays",
        "delivery_classes",
        "durability",
        "durability_classes",
        "ended_subscriptions",
        "expiry",
        "expressions",
        "failed_logins",
        "inbound_alias_figures",
        "keep_alive",
        "listeners",
        "memory",
        "new_client_id",
        "notices",
        "pending",
        "property_cache",
        "queue_memory",
        "refusals",
        "replays",
        "retained",
        "router",
        "session_limits",
        "sessions",
        "settings",
        "shares",
        "sockets",
        "store",
        "subscription_filters",
        "topic_limits",
        "topic_memory",
        "traffic",
        "watch",
    )

    def __init__(
        self,
        settings: BrokerSettings,
        counters: Counters,
        durability: Durability,
        store: Store,
        publish: Publish,
        *,
        new_client_id: Callable[[], str],
        randrange: Callable[[int], int],
        timer: Callable[[], int] | None,
    ) -> None:
        self.settings = settings
        self.counters = counters
        self.durability = durability
        self.pending = durability.pending
        self.store = store
        self.new_client_id = new_client_id
        self.traffic = Traffic()
        self.topic_memory: TopicMemory | None = None
        self.watch: Callable[[Publication, int, int], None] | None = None
        """Called with messages that are delivered, from a number on, and how many."""
        self.deadlines = Deadlines()
        self.sockets = 0  # network connections since the start
        self.connects = 0  # CONNECT packets since the start
        self.sessions: dict[str, Session] = {}
        self.clients: dict[str, Client] = {}
        self.connections: set[Client] = set()  # also those without a session
        self._make_connecting()
        self._make_limits()
        self._make_routing(timer)
        self._make_shares()
        self.channels = self._channels(publish, randrange)
        self._make_postponed(publish)

    def _make_connecting(self) -> None:
        """Make what accepts clients."""
        self.listeners = Listeners()  # the rights at each, also of disconnected clients
        self.notices = Notices()
        self.connection_lines = ConnectionLines(self.notices)
        self.keep_alive = KeepAlive(self.deadlines)
        self.failed_logins = FailedLogins(self.settings.failed_login_delay)

    def _make_limits(self) -> None:
        """Make the bounds from the settings, and the classes of topics and sessions."""
        settings = self.settings
        self.property_cache = PropertyCache()
        self.inbound_alias_figures = InboundFigures()
        self.alias_budget = alias_budget(settings)
        self.topic_limits = topic_limits(settings)
        self.queue_memory = queue_memory(settings, on_disk=self.store.durable)
        self.session_limits = session_limits(settings, self.queue_memory)
        self.durability_classes = DurabilityClasses(
            settings.durability, settings.default_durability
        )
        self.delivery_classes = DeliveryClasses(settings.delivery)
        self.subscription_filters = SubscriptionFilters(settings.subscription_filters)

    def _make_routing(self, timer: Callable[[], int] | None) -> None:
        """Make what finds receivers, and what replays retained messages."""
        settings = self.settings
        self.budget = Budget(timer)
        self.router = Router(self.budget, settings.maximum_subscription_bytes)
        self.retained = RetainedMessages()
        self.admissions = TopicAdmissions(
            self.router,
            self.topic_limits,
            self.durability_classes,
            p2p=settings.p2p,
            maximum_bytes=settings.maximum_route_bytes,
        )
        self.refusals = Refusals(self.counters)
        self.replays = Replays(self.retained, self.budget, self.deadlines, self.counters)
        self.ended_subscriptions = EndedSubscriptions(self.router, self.deadlines)
        self.conflation = Conflation(settings, self.counters, self.queue_memory, self.deadlines)

    def _make_shares(self) -> None:
        """Make what keeps one user from using up what all share."""
        self.shares = Shares(
            self.settings,
            self.counters,
            self.router,
            self.retained,
            self.queue_memory,
            self.sessions,
            maximum_delayed=delays.MAXIMUM_MESSAGES,
        )
        self.expressions = Expressions(self.settings.maximum_expressions, self.shares)

    def _channels(self, publish: Publish, randrange: Callable[[int], int]) -> Channels:
        if self.settings.unconfigured_channels is not Unconfigured.SHARED:
            channel_class()  # in memory before a consumer would wait for it
        return Channels(
            self.settings,
            lambda channel, *level: channel_class()(
                channel,
                self.router,
                self.deadlines,
                self.queue_memory,
                self.counters,
                self.traffic,
                publish,
                randrange,
                *level,
            ),
            self.router,
            self.deadlines,
            self.shares,
            self.store,
            self.sessions,
            self.session_limits.when_full,
        )

    def _make_postponed(self, publish: Publish) -> None:
        """Make what happens later: delayed messages, the memory limit, expiry."""
        self.delays = delays.Delays(
            self.counters,
            self.session_limits,
            self.traffic,
            self.deadlines,
            self.shares,
            self.store,
            self.refusals,
            publish,
        )
        self.memory = MemoryBudget(
            self.settings.memory_limit,
            self.deadlines,
            self.connections,
            self.sessions,
            self.channels.every_level,
            self.queue_memory,
            self.retained,
            self.router,
            self.alias_budget,
            self.admissions,
        )
        self.expiry = Expiry(
            self.retained,
            self.sessions,
            self.channels.every_level,
            self.shares,
            self.store,
            self.deadlines,
            self.counters,
        )

    def commit_since(self, before: int) -> int:
        """Return the commit that an answer waits for, 0 if `pending.changes` is as `before`."""
        return self.durability.commit_number() if self.pending.changes != before else 0

    def packet_size(self, info: ConnectionInfo) -> int:
        """Return the largest packet that is accepted from an accepted client."""
        return info.maximum_packet_size or self.settings.maximum_packet_size


def topic_limits(settings: BrokerSettings) -> TopicLimits:
    """Return how deep and how long topics may be."""
    return TopicLimits(settings.maximum_topic_levels, settings.maximum_topic_length)


def alias_budget(settings: BrokerSettings) -> AliasBudget:
    """Return how many bytes the topic aliases of all connections may occupy."""
    return AliasBudget(
        settings.topic_alias_client_bytes,
        settings.topic_alias_soft_bytes,
        settings.topic_alias_hard_bytes,
    )


def queue_memory(settings: BrokerSettings, *, on_disk: bool) -> QueueMemory:
    """Return what all queues together may hold; without a disk all of it is in memory."""
    total = settings.maximum_queued_bytes_total
    in_memory = MAXIMUM_BYTES_TOTAL if on_disk else min(total, MAXIMUM_BYTES_TOTAL)
    return QueueMemory(in_memory, total)


def session_limits(settings: BrokerSettings, memory: QueueMemory) -> SessionLimits:
    """Return what one session may hold; `memory` is the limit of all sessions together."""
    return SessionLimits(
        settings.maximum_inflight,
        max(MAXIMUM_INCOMING, 2 * settings.receive_maximum),
        settings.maximum_queued_messages,
        settings.maximum_queued_bytes,
        settings.queue_when_full,
        memory,
    )
