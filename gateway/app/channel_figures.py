"""What `$SYS` says of channels."""

import json

from gateway.broker.channels.channel import Channel
from gateway.broker.channels.channels import Channels
from gateway.counters import Counters

FIGURES = "tidegate/channels/"
"""What the names of channels' figures begin with, before the channel's name."""


def show_channels(channels: Channels, counters: Counters, now: float) -> None:
    """Set the figures of every channel, and forget those of channels that are gone."""
    gone = {name for name in counters.values if name.startswith(FIGURES)}
    for channel in channels:
        for name, value in _figures(channel, now).items():
            full = f"{FIGURES}{channel.settings.share_name}/{name}"
            counters.set(full, value)
            gone.discard(full)
    for name in gone:
        counters.forget(name)
    counters.set("tidegate/channels", len(channels))
    counters.set("tidegate/channels_refused", channels.refused)
    counters.set("tidegate/channels_paused_filters", json.dumps([*channels.paused_filters]))


def _figures(channel: Channel, now: float) -> dict[str, int | float | str]:
    figures, settings = channel.figures, channel.settings
    state = "paused" if channel.waiting.paused else "open"
    return {
        "state": state,
        "kind": "temporary" if settings.in_memory else "durable",
        "filter": settings.topic_filter,
        "consumers": len(channel.consumers),
        "depth": channel.depth,
        "bytes": channel.queue.bytes,
        "put_aside": channel.waiting.returned.put_aside,
        "in_flight": channel.in_flight,
        "attempts": channel.attempts,
        "oldest_seconds": round(channel.oldest(now), 1),
        "received": figures.received,
        "delivered": figures.delivered,
        "acknowledged": figures.acknowledged,
        "unacknowledged": figures.unacknowledged,
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
