"""Limits how much of a common resource one client, user or address may use."""

import heapq
from collections.abc import Callable, Iterator, Mapping
from sys import intern
from typing import Final

from gateway.broker.client import Client
from gateway.broker.own_names import is_own_name
from gateway.counters import Counters
from gateway.mqtt.publication import Publication
from gateway.routing.retained.retained import LEVEL_OVERHEAD, RetainedMessages
from gateway.routing.router import Router
from gateway.routing.subscriptions.subscription import Subscription
from gateway.session.queue.memory import QueueMemory
from gateway.session.session import Session
from gateway.session.span import SPAN_OVERHEAD
from gateway.settings.broker import BrokerSettings

OF_HOLDER = 80
"""Percent of a holder's share that one client may use, beside what its other clients use."""

GONE: Final = "clients that have not been here since the start"
"""The holder of restored state, until a client reconnects to it."""

UNIX_SOCKET: Final = "clients at Unix sockets without a user name"

UNNAMED: Final = "clients at "
"""Prefix of the names of holders that are not users."""

OF_UNNAMED = 90
"""Percent of all that clients without a proven user name may use together, from all addresses."""

MEMORY_PART = 4
"""The part of the queues' memory that wills, and delayed messages, may occupy: a quarter."""

LEVEL_BYTES = 300
"""Bytes of a level of a topic filter, about, while there are too few subscriptions to measure."""

FEW_LEVELS = 1_000
"""Levels of topic filters up to which the measured size of a level would be too high."""

SHOWN = 80
"""Characters of a name that are shown."""

Key = str | tuple[str | None, str | None]
"""A client identifier, with the user name if it publishes for several users."""


class Share:
    """Counts one kind of resource by client and holder, and refuses what exceeds a share.

    All holders that are not users may use OF_UNNAMED percent together. A holder may use `percent`
    of what other holders leave, and a client OF_HOLDER percent of what other clients of its holder
    leave. So something is always available for a newcomer. `limit` returns the total, a number or
    bytes.
    """

    __slots__ = (
        "_clients",
        "_limit",
        "_of_holders",
        "name",
        "percent",
        "total",
        "unnamed",
        "what",
    )

    def __init__(self, name: str, what: str, limit: Callable[[], int], percent: int) -> None:
        self.name = name
        self.what = what
        self.total = 0
        self.unnamed = 0  # of these, used by clients without a proven user name
        self._limit = limit
        self.percent = percent
        self._of_holders: dict[str, int] = {}
        self._clients: dict[Key, tuple[str, int]] = {}  # the holder, and how much

    @property
    def limit(self) -> int:
        """The total that may be used, a number or bytes."""
        return self._limit()

    def holder(self, key: Key) -> str | None:
        """Return the holder to whom a client's use is counted, None if it uses nothing."""
        found = self._clients.get(key)
        return None if found is None else found[0]

    def add(self, key: Key, holder: str, more: int = 1) -> None:
        """Count more use of a client, to its present holder if it has one."""
        holder, has = self._clients.get(key, (holder, 0))
        self._clients[key] = holder, has + more
        self._of_holders[holder] = self._of_holders.get(holder, 0) + more
        self.total += more
        if holder.startswith(UNNAMED):
            self.unnamed += more

    def remove(self, key: Key, less: int = 1) -> None:
        """Count less use of a client."""
        holder, has = self._clients.pop(key)
        if has > less:
            self._clients[key] = holder, has - less
        left = self._of_holders.pop(holder) - less
        if left > 0:
            self._of_holders[holder] = left
        self.total -= less
        if holder.startswith(UNNAMED):
            self.unnamed -= less

    def move(self, key: Key, holder: str) -> None:
        """Count a client's use to this holder from now on."""
        found = self._clients.get(key)
        if found is not None and found[0] != holder:
            self.remove(key, found[1])
            self.add(key, holder, found[1])

    def refusal(self, key: Key, holder: str, more: int = 1) -> str:
        """Return why a client may not use so much more, "" if it may."""
        if self.percent == 100:
            return ""
        limit = self._limit()
        allowed = max(1, limit * OF_UNNAMED // 100)
        if self.unnamed + more > allowed and holder.startswith(UNNAMED):
            return self._reason(self.unnamed, "all clients without a user name", allowed)
        has = self._of_holders.get(holder, 0)
        allowed = max(1, (limit - self.total + has) * self.percent // 100)
        if has + more > allowed:
            return self._reason(has, holder[:SHOWN], allowed)
        own = self._clients.get(key, (holder, 0))[1]
        allowed = max(1, (allowed - has + own) * OF_HOLDER // 100)
        if own + more > allowed:
            name = (key if isinstance(key, str) else key[0]) or ""
            return self._reason(own, f"client {name[:SHOWN]!r}", allowed)
        return ""

    def _reason(self, has: int, who: str, allowed: int) -> str:
        return f"{has:,} {self.what} of {who}; the limit is {allowed:,}"

    def largest(self, most: int) -> list[tuple[str, int]]:
        """Return the holders that use most, and how much."""
        return heapq.nlargest(most, self._of_holders.items(), key=lambda each: each[1])

    def largest_clients(self, most: int) -> list[tuple[str, int]]:
        """Return the clients that use most, and how much."""
        found = heapq.nlargest(most, self._clients.items(), key=lambda each: each[1][1])
        return [((key if isinstance(key, str) else key[0]) or "", has) for key, (_, has) in found]


class Shares:
    """The shares of all kinds of resources, and their holders.

    A holder is a user, or all clients without a proven user name from one address (of IPv6 from one
    /64), or at Unix sockets. `refusal` is why something was refused last.
    """

    __slots__ = (
        "_counters",
        "_proven",
        "_retained",
        "_router",
        "_sessions",
        "_settings",
        "channels",
        "delayed",
        "delayed_bytes",
        "expressions",
        "refusal",
        "retained",
        "retained_bytes",
        "sessions",
        "subscriptions",
        "will_bytes",
    )

    def __init__(
        self,
        settings: BrokerSettings,
        counters: Counters,
        router: Router,
        retained: RetainedMessages,
        memory: QueueMemory,
        sessions: Mapping[str, Session],
        *,
        maximum_delayed: int,
    ) -> None:
        self._settings = settings
        self._counters = counters
        self._router = router
        self._retained = retained
        self._sessions = sessions
        self._proven: set[str] = set()  # user names
        self.refusal = ""

        def share(name: str, what: str, limit: Callable[[], int]) -> Share:
            return Share(name, what, limit, settings.maximum_share)

        self.sessions = share(
            "sessions",
            "persistent sessions",
            lambda: self._settings.maximum_persistent_sessions,
        )
        self.subscriptions = share("subscriptions", "levels of topic filters", self._most_levels)
        self.expressions = share(
            "expressions", "expressions", lambda: self._settings.maximum_expressions
        )
        self.channels = share("channels", "channels", lambda: self._settings.maximum_channels)
        self.delayed = share("delayed", "delayed messages", lambda: maximum_delayed)
        self.delayed_bytes = share(
            "delayed_bytes",
            "bytes of delayed messages",
            lambda: memory.maximum_bytes // MEMORY_PART,
        )
        self.retained = share("retained", "retained messages", lambda: retained.maximum_messages)
        self.retained_bytes = share(
            "retained_bytes", "bytes of retained messages", self._most_retained_bytes
        )
        self.will_bytes = share(
            "will_bytes", "bytes of wills", lambda: memory.maximum_bytes // MEMORY_PART
        )
        router.on_add.append(self._subscribed)
        router.on_discard.append(self._unsubscribed)

    def change(self, settings: BrokerSettings) -> None:
        """Apply other bounds from now on; what exceeds them stays."""
        self._settings = settings
        for share in self:
            share.percent = settings.maximum_share

    def __iter__(self) -> Iterator[Share]:
        return iter(
            (
                self.sessions,
                self.subscriptions,
                self.expressions,
                self.channels,
                self.delayed,
                self.delayed_bytes,
                self.retained,
                self.retained_bytes,
                self.will_bytes,
            )
        )

    def know(self, session: Session, client: Client) -> None:
        """Count a client's use to its present holder."""
        session.holder = holder = holder_of(client, session.username)
        if client.proven and session.username is not None:
            self._proven.add(session.username)
        client_id = session.client_id
        for share in self:
            share.move(client_id, holder)
            share.move((client_id, session.username), holder)

    def publisher(self, publication: Publication) -> str:
        """Return the holder of the resources that a publication uses."""
        client_id, username = publication.client_id, publication.username
        session = self._sessions.get(client_id or "")
        if session is not None and session.username == username:
            return session.holder
        if username in self._proven:
            return f"user {username!r}"
        return self.delayed.holder((client_id, username)) or GONE

    def refuse(self, share: Share, key: Key, holder: str, more: int = 1) -> bool:
        """Return whether a client or its holder has used up its share; count that."""
        refusal = share.refusal(key, holder, more)
        if refusal:
            self.refusal = refusal
            self._counters.add(f"tidegate/shares/refused/{share.name}")
        return refusal != ""

    def may_subscribe(self, session: Session, topic_filter: str) -> bool:
        """Return whether the shares allow a session one more subscription.

        While all together have less than the smallest share, no share is checked.
        """
        router, percent = self._router, self._settings.maximum_share
        least = router.maximum_bytes * percent * OF_HOLDER // (100 * 100)
        if router.occupies_less(least - FEW_LEVELS * LEVEL_BYTES):
            return True
        levels = filter_levels(topic_filter)
        return not self.subscriptions.refusal(session.client_id, session.holder, levels)

    def refuse_delayed(self, publication: Publication, first: int, count: int) -> bool:
        """Return whether this many messages may not be delayed."""
        if _is_own(publication):
            return False
        key, holder = _publisher_key(publication), self.publisher(publication)
        size = publication.size(first, count) + count * SPAN_OVERHEAD
        return self.refuse(self.delayed, key, holder, count) or self.refuse(
            self.delayed_bytes, key, holder, size
        )

    def count_delayed(self, publication: Publication, number: int, sign: int) -> None:
        """Count a delayed message, or, with the sign -1, one that no longer waits."""
        if not _is_own(publication):
            key = _publisher_key(publication)
            size = publication.size(number, 1) + SPAN_OVERHEAD
            if sign > 0:
                holder = self.publisher(publication)
                self.delayed.add(key, holder)
                self.delayed_bytes.add(key, holder, size)
            else:
                self.delayed.remove(key)
                self.delayed_bytes.remove(key, size)

    def may_retain(self, publication: Publication, first: int, count: int) -> bool:
        """Return whether this many messages surely fit into the shares of retained messages."""
        if _is_own(publication):
            return True
        key, holder = _publisher_key(publication), self.publisher(publication)
        levels = publication.topic.count("/") + 1
        size = publication.size(first, count) + count * LEVEL_OVERHEAD * levels
        return not (
            self.retained.refusal(key, holder, count)
            or self.retained_bytes.refusal(key, holder, size)
        )

    def refuse_retained(self, publication: Publication) -> bool:
        """Return whether one more message may not be retained."""
        if _is_own(publication) or self._retained.get(publication.topic) is not None:
            return False
        if publication.packets.payload_bytes(0, 1) == 0:
            return False
        key, holder = _publisher_key(publication), self.publisher(publication)
        return self.refuse(self.retained, key, holder) or self.refuse(
            self.retained_bytes, key, holder, retained_size(publication)
        )

    def count_retained(self, before: Publication | None, now: Publication | None) -> None:
        """Count a retained message in place of the one before."""
        if before is not None and now is not None and _has_same_share(before, now):
            return
        if now is not None and not _is_own(now):
            key, holder = _publisher_key(now), self.publisher(now)
            self.retained.add(key, holder)
            self.retained_bytes.add(key, holder, retained_size(now))
        if before is not None and not _is_own(before):
            key = _publisher_key(before)
            self.retained.remove(key)
            self.retained_bytes.remove(key, retained_size(before))

    def _subscribed(self, _: int, subscription: Subscription) -> None:
        session = subscription.subscriber
        if isinstance(session, Session):
            self.subscriptions.add(
                session.client_id, session.holder, filter_levels(subscription.topic_filter)
            )

    def _unsubscribed(self, _: int, subscription: Subscription) -> None:
        session = subscription.subscriber
        if isinstance(session, Session):
            self.subscriptions.remove(session.client_id, filter_levels(subscription.topic_filter))

    def _most_levels(self) -> int:
        """Return about how many levels fit into memory, if all are as long as the present ones."""
        router = self._router
        held = router.bytes + FEW_LEVELS * LEVEL_BYTES
        return (self.subscriptions.total + FEW_LEVELS) * int(router.maximum_bytes) // int(held)

    def _most_retained_bytes(self) -> int:
        """Return the bound in units of `retained_size`, which ignores that topics share levels."""
        retained = self._retained
        total, maximum = self.retained_bytes.total, retained.maximum_bytes
        return total * maximum // retained.bytes if total and retained.bytes else maximum


def holder_of(client: Client, username: str | None) -> str:
    """Return the holder of a connected client's share: one text object for each holder."""
    if client.proven and username is not None:
        return intern(f"user {username!r}")
    address = client.peer.rpartition(":")[0]
    if not address:
        return UNIX_SOCKET
    return intern(f"{UNNAMED}{network(address)} without a user name")


def network(address: str) -> str:
    """Return an IPv4 address unchanged, and the /64 of an IPv6 address."""
    host = address.strip("[]")
    left, gap, right = host.partition("::")
    if ":" not in host or "." in right:
        return host.rpartition(":")[2]
    groups, last = left.split(":") if left else [], right.split(":") if right else []
    groups += ["0"] * (8 - len(groups) - len(last) if gap else 0)
    return ":".join((groups + last)[:4]) + "::/64"


def filter_levels(topic_filter: str) -> int:
    """Return how many levels a topic filter counts for; long names count more."""
    return topic_filter.count("/") + 1 + len(topic_filter) // 64


def retained_size(publication: Publication) -> int:
    """Return the bytes that a retained message counts for, with the levels of its topic."""
    return publication.size(0, 1) + LEVEL_OVERHEAD * (publication.topic.count("/") + 1)


def _publisher_key(publication: Publication) -> Key:
    return publication.client_id, publication.username


def _has_same_share(before: Publication, now: Publication) -> bool:
    """Return whether two messages of one topic count the same."""
    return (
        before.client_id == now.client_id
        and before.username == now.username
        and before.size(0, 1) == now.size(0, 1)
    )


def _is_own(publication: Publication) -> bool:
    """Return whether the gateway itself published it."""
    return publication.client_id is None or is_own_name(publication.client_id)
