"""Keeps a connection to the gateway up, in a thread of its own, and passes on what it hears."""

import secrets
import time
from collections.abc import Sequence
from queue import SimpleQueue
from threading import Event, Thread

from tui.address import Address
from tui.connection import Connection
from tui.inbox import Arrival, Inbox
from tui.link import Link, Phase, Told, delay_after

CONTROL = "$CONTROL/tidegate/"
REJECTED = "rejected"
"""the request that is answered as queries are and is none"""
LOOPBACK = ("localhost", "127.0.0.1", "::1")
STOP_TIMEOUT = 2.0
"""seconds given to the thread to end"""


class GatewayClient:
    """A plain MQTT client of a gateway that connects again, with backoff, whenever it must.

    Messages go to `inbox`, all else to `told`; whoever draws the screen takes both. A login that
    is refused is not tried again before `retry_now`.
    """

    def __init__(self, address: Address) -> None:
        self.inbox = Inbox()
        self.told: SimpleQueue[Told] = SimpleQueue()
        self.heard_at = 0.0
        """when anything came last"""
        self._address = address
        # The same identifier each time, so that a new connection ends a half-dead old one.
        self.client_id = f"tidegate-tui-{secrets.token_hex(4)}"
        self._attempt = 1
        self._stopping = Event()
        self._hurry = Event()
        self._connection = self._new_connection()
        self._thread = Thread(target=self._run, name="gateway-client", daemon=True)

    def __str__(self) -> str:
        """Return where the gateway is."""
        return str(self._address)

    @property
    def is_local(self) -> bool:
        """Whether the gateway is on this machine, by its socket or loopback."""
        return not self._address.port or self._address.host in LOOPBACK

    def options(self) -> tuple[list[str], dict[str, str]]:
        """Return the options and the environment with which a command asks the same gateway."""
        address = self._address
        if not address.port or address.tls is not None:
            return [], {}  # it finds this machine's by itself
        user = [] if address.username is None else ["--username", address.username]
        secret = {} if address.password is None else {"TIDEGATE_PASSWORD": address.password}
        return ["--gateway", str(address), *user], secret

    def clock(self) -> float:
        """Return the seconds since 1970."""
        return now()

    def start(self) -> None:
        """Begin to connect."""
        self._thread.start()

    def stop(self) -> None:
        """Disconnect and end the thread, or leave it behind if it does not end in time."""
        self._stopping.set()
        self._hurry.set()
        if self._thread.ident is not None:
            self._thread.join(STOP_TIMEOUT)

    def retry_now(self, password: str | None = None) -> None:
        """Cut the wait for the next attempt short; log in with another password if it is given."""
        if password is not None:
            self._address = self._address.with_password(password)
        self._hurry.set()

    def subscribe_to_answers(self) -> None:
        """Ask for the answers to queries."""
        self._connection.subscribe_to_answers()

    def subscribe(self, topic_filters: Sequence[str], every: int = 0, where: str = "") -> None:
        """Ask for messages at QoS 0, the newest of each topic `every` so many milliseconds."""
        self._connection.subscribe(topic_filters, every, where)

    def unsubscribe(self, topic_filters: Sequence[str]) -> None:
        """Ask for messages no longer."""
        self._connection.unsubscribe(topic_filters)

    def ask(self, key: str, query: str, request: bytes) -> None:
        """Send a query (docs/query.md), or a request about rejected messages (docs/fleet.md)."""
        part = query if query == REJECTED else f"query/{query}"
        self._connection.ask(key, CONTROL + part, request)

    def order(self, key: str, part: str, word: str) -> None:
        """Publish a command below `$CONTROL/tidegate/`; its PUBACK is told with the key."""
        self._connection.publish(key, CONTROL + part, word.encode())

    def publish(self, key: str, topic: str, payload: bytes) -> None:
        """Publish a message; its PUBACK is told with the key."""
        self._connection.publish(key, topic, payload)

    def _new_connection(self) -> Connection:
        return Connection(
            self._address, self.client_id, self._on_connected, self._on_heard, self._on_told
        )

    def _run(self) -> None:
        reason = ""
        while not self._stopping.is_set():
            self._hurry.clear()
            self.told.put(Link(Phase.CONNECTING, self._attempt, reason))
            self._connection = self._new_connection()
            reason = self._connection.run(self._stopping.is_set)
            if not self._stopping.is_set():
                self._wait(reason)

    def _wait(self, reason: str) -> None:
        if self._connection.login_refused:
            self.told.put(Link(Phase.REFUSED, self._attempt, reason))
            self._hurry.wait()
            return
        delay = delay_after(self._attempt)
        self._attempt += 1
        self.told.put(Link(Phase.WAITING, self._attempt, reason, now() + delay))
        self._hurry.wait(delay)

    def _on_connected(self) -> None:
        self._attempt = 0
        self.inbox.clear()
        self.heard_at = now()
        self.told.put(Link(Phase.CONNECTED))

    def _on_told(self, told: Told) -> None:
        self.heard_at = now()
        self.told.put(told)

    def _on_heard(self, topic: str, payload: bytes, retained: bool) -> None:
        self.heard_at = now()
        self.inbox.put(Arrival(topic, payload, retained, self.heard_at))


_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_START = time.time() - time.clock_gettime(_CLOCK)


def now() -> float:
    """Return the seconds since 1970: the wall clock at the start, and steady from there."""
    return _START + time.clock_gettime(_CLOCK)
