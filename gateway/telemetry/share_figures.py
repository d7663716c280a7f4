"""Figures of shares: who holds most of what the gateway has for all."""

import json

from gateway.broker.broker import Broker
from gateway.broker.shares import SHOWN, Share
from gateway.counters import Counters

SHOWN_HOLDERS = 3
"""Holders, and clients, that are shown of each kind."""


def show_largest(broker: Broker, counters: Counters) -> None:
    """Set who holds most of each kind of which there is any."""
    found = {share.name: _told(share) for share in broker.shares if share.total}
    counters.set("tidegate/shares/largest", json.dumps(found, ensure_ascii=False))


def _told(share: Share) -> dict[str, int | list[tuple[str, int]]]:
    return {
        "total": share.total,
        "limit": share.limit,
        "holders": _short(share.largest(SHOWN_HOLDERS)),
        "clients": _short(share.largest_clients(SHOWN_HOLDERS)),
    }


def _short(found: list[tuple[str, int]]) -> list[tuple[str, int]]:
    return [(name[:SHOWN], has) for name, has in found]
