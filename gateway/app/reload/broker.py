"""The broker's part of the configuration, at the start and after a reload."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace

from gateway.app.listeners import between_turns
from gateway.app.parts import Core
from gateway.app.process_limits import default_limit, for_clients, occupied
from gateway.app.query.topics import TopicQueries
from gateway.broker.change import change
from gateway.broker.subscribing.expressions import SubscriptionFilters
from gateway.config.configuration import Configuration
from gateway.config.errors import ConfigurationError
from gateway.settings.broker import BrokerSettings
from gateway.telemetry.sys_topics import SysTopics


def broker_settings(configuration: Configuration, memory_limit: int) -> BrokerSettings:
    """Return the settings of the broker, from all sections that it needs."""
    return replace(
        configuration.broker,
        subscription_filters=configuration.subscription_filters,
        retained_expiry=configuration.retained_expiry,
        durability=configuration.durability,
        default_durability=configuration.storage.durability,
        channels=configuration.channels,
        delivery=configuration.delivery,
        memory_limit=memory_limit,
    )


class BrokerPart:
    """Changes the broker and other parts with limits in `[broker]`."""

    def __init__(self, core: Core, sys_topics: SysTopics, topics: TopicQueries) -> None:
        self._core = core
        self._sys_topics = sys_topics
        self._topics = topics

    async def prepare(
        self, old: Configuration, new: Configuration, _stack: AsyncExitStack
    ) -> Callable[[], Awaitable[None]]:
        """Return a function that applies a configuration; raise ConfigurationError for a loss."""
        broker = self._core.broker
        settings = broker_settings(new, self._memory_limit(old, new))
        for channel in broker.channels.in_the_way(settings):
            name = channel.settings.share_name
            number = next(n for n, each in enumerate(new.channels) if each.share_name == name)
            waiting = f"{channel.depth + channel.in_flight:,} messages, which would be lost"
            allowed = f"the kind that it had: it holds {waiting}; first `tidegate channel empty`"
            raise ConfigurationError(new.file, f"channel[{number}].temporary", None, allowed)
        # in a thread: compiling a thousand expressions takes longer than others can wait
        filters = await asyncio.to_thread(SubscriptionFilters, settings.subscription_filters)
        return lambda: self._change(settings, filters)

    def _memory_limit(self, old: Configuration, new: Configuration) -> int:
        broker = self._core.broker
        if old.memory == new.memory:
            return broker.settings.memory_limit
        beside = max(0, occupied() - broker.memory.bytes)
        return for_clients(new.memory.limit or default_limit(), beside)

    async def _change(self, settings: BrokerSettings, filters: SubscriptionFilters) -> None:
        broker, turn = self._core.broker, self._core.turn
        if settings == broker.settings:
            return
        turn.now()  # its end writes the changes to disk
        await between_turns(change(broker, settings, filters))
        turn.flushes.maximum = settings.delivery.flush_sessions
        self._sys_topics.interval = settings.sys_interval
        self._topics.remember(settings.remembered_topics)
