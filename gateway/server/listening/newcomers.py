"""Connections without an accepted CONNECT, some of which are closed for new ones."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from gateway.config.addresses import address_block
from gateway.server.transport import ClientTransport, Progress, peer_name

CANDIDATES = 32
"""Connections among which the one to close is chosen: some 30 microseconds."""

FORGOTTEN_AT_ONCE = 2
"""Accepted ones that are removed at each new connection, so that they do not pile up."""


class Newcomers:
    """The newcomers of one listener, the oldest first; `on_given_up` is called when one is closed.

    Silent connections are closed before those whose password is being checked. Of the silent ones
    the oldest is closed: a real client has sent its CONNECT by then. Of the waiting ones the newest
    is closed: the oldest is checked next. Both are chosen from the address with most of LOOKED_AT.
    """

    __slots__ = ("_clients", "_on_closed")

    def __init__(self, on_given_up: Callable[[ClientTransport], None]) -> None:
        self._clients: dict[ClientTransport, Any] = {}  # and the TLS below each, None without
        self._on_closed = on_given_up

    def __len__(self) -> int:
        return len(self._clients)

    def add(self, client: ClientTransport, protocol: Any) -> None:
        """Add a connection; `protocol` is what its socket talks to, such as TLS."""
        for first in list(islice(self._clients, FORGOTTEN_AT_ONCE)):
            if first.progress is Progress.ACCEPTED:
                del self._clients[first]
        self._clients[client] = protocol if isinstance(protocol, asyncio.Transport) else None

    def discard(self, client: ClientTransport) -> None:
        """Forget a connection that has ended."""
        self._clients.pop(client, None)

    def close_one(self) -> bool:
        """Close one of them and return whether there was one."""
        found = self._chosen()
        if found is None:
            return False
        below = self._clients.pop(found)
        self._on_closed(found)
        (below or found).abort()
        return True

    def _chosen(self) -> ClientTransport | None:
        oldest: list[ClientTransport] = []
        accepted = []
        for client in self._clients:
            if client.progress is Progress.ACCEPTED:
                accepted.append(client)
            elif client.connected or self._clients[client] is not None:
                oldest.append(client)
            if len(oldest) == CANDIDATES:
                break
        for client in accepted:
            del self._clients[client]
        silent = [client for client in oldest if client.progress is Progress.SILENT]
        if silent:
            return self._of_most(silent)
        newest = islice(reversed(self._clients), CANDIDATES)
        return self._of_most([each for each in newest if each.progress is Progress.WAITING])

    def _of_most(self, clients: list[ClientTransport]) -> ClientTransport | None:
        """Return the first that has the most frequent address of these."""
        blocks = [self._block(client) for client in clients]
        counted = Counter(blocks)
        if not counted:
            return None
        most = counted.most_common(1)[0][0]
        return clients[blocks.index(most)]

    def _block(self, client: ClientTransport) -> str:
        below = self._clients[client]
        peer = client.peer if below is None else peer_name(below)
        return address_block(peer.rpartition(":")[0].strip("[]"))


def close_one(listeners: Iterable[Newcomers]) -> bool:
    """Close a newcomer of the listener that has most, and return whether there was one."""
    return any(each.close_one() for each in sorted(listeners, key=len, reverse=True))
