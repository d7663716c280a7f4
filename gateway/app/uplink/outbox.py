"""Makes the outbox with its configured bounds, and removes expired messages."""

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from gateway.config.settings import Configuration, OutboxConfig, StreamConfig
from gateway.config.when_full import WhenFull
from gateway.storage.engine.pending_batch import PendingBatch
from gateway.storage.outbox.bounds import (
    Mode,
    OutboxSettings,
    Retention,
    StreamSettings,
)
from gateway.storage.outbox.outbox import Outbox
from gateway.storage.outbox.row import (
    OutboxRow,
    Outcome,
)

if TYPE_CHECKING:
    from gateway.app.gateway import Gateway

logger = logging.getLogger(__name__)

SWEEP_SECONDS = 1.0
"""Seconds between two searches for expired messages."""


async def start_outbox(
    gateway: "Gateway",
    streams: Iterable[str],
    on_outcome: Callable[[Sequence[OutboxRow], Outcome, str], None],
) -> Outbox:
    """Return the outbox with what an earlier run left; `streams` are those of the rules.

    `on_outcome` hears how rows end.
    """
    settings = outbox_settings(gateway.configuration, streams)
    kept = gateway.broker.store.pending
    pending = kept if isinstance(kept, PendingBatch) else None
    names = [each.name or "" for each in gateway.configuration.uplinks]
    outbox = Outbox(gateway.database, gateway.writer, gateway.counters, settings, pending, names)
    outbox.on_outcome.append(on_outcome)
    await outbox.load()
    gateway.stack.push_async_callback(outbox.close)
    sweeping = asyncio.get_running_loop().create_task(_sweep(gateway, outbox))
    gateway.stack.callback(sweeping.cancel)
    return outbox


def outbox_settings(configuration: Configuration, streams: Iterable[str]) -> OutboxSettings:
    """Return the bounds of the outbox and of each stream, configured or not."""
    configured = {each.name: each for up in configuration.uplinks for each in up.streams}
    names = dict.fromkeys((*configured, *streams))
    whole = WhenFull(configuration.outbox.when_full)
    usual = whole if whole is WhenFull.REJECT else WhenFull.DROP_NEWEST
    return OutboxSettings(
        _retention(configuration.outbox, usual),
        tuple(_stream(configured.get(name, StreamConfig(name)), usual) for name in names),
    )


def _retention(config: OutboxConfig | StreamConfig, usual: WhenFull) -> Retention:
    return Retention(
        config.maximum_bytes,
        config.maximum_messages,
        config.maximum_age or None,
        usual if config.when_full is None else WhenFull(config.when_full),
    )


def _stream(config: StreamConfig, usual: WhenFull) -> StreamSettings:
    retention = _retention(config, usual)
    return StreamSettings(
        config.name, config.priority, retention, Mode(config.mode), config.expire_after
    )


async def _sweep(gateway: "Gateway", outbox: Outbox) -> None:
    while True:
        more = False
        try:
            more = await outbox.sweep(gateway.clock.wall_ms(), gateway.clock.monotonic())
        except sqlite3.Error as error:
            logger.warning("the outbox could not be searched for expired messages: %s", error)
        await asyncio.sleep(0 if more else SWEEP_SECONDS)
