"""The bounds of a broker's parts, as its settings have them."""

from gateway.mqtt.aliases.topic_aliases import AliasBudget
from gateway.mqtt.topics import TopicLimits
from gateway.session.incoming import MAXIMUM_INCOMING
from gateway.session.limits import SessionLimits
from gateway.session.queue.memory import MAXIMUM_BYTES_TOTAL, QueueMemory
from gateway.settings.broker import BrokerSettings


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
