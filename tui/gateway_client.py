"""Keeps a connection to the gateway up, in a thread of its own, and passes on what it hears."""

import secrets
from collections.abc import Callable
from threading import Event, Thread

from textual.message import Message

from tui.address import Address
from tui.clock import now
from tui.connection import Connection
from tui.inbox import Arrival, Inbox
from tui.link import Link, Phase, delay_after
from tui.messages import LinkChanged
from tui.topics import GATEWAY, Topics

STOP_TIMEOUT = 2.0
"""seconds given to the thread to end"""


class GatewayClient:
    """A plain MQTT client of a gateway that connects again, with backoff, whenever it must.

    What the gateway tells of itself goes to the inbox `figures`, sensors to `readings`; all
    else through `post`, which must be safe to call from another thread. After each LinkChanged
    to CONNECTED the owner calls `subscribe`, so that nothing comes before the owner is ready.
    """

    def __init__(
        self, address: Address, post: Callable[[Message], object], topics: Topics = GATEWAY
    ) -> None:
        self.figures = Inbox()
        self.readings = Inbox()
        self.heard = 0
        """messages that came since the last `subscribe`"""
        self._address = address
        self._post = post
        self._topics = topics
        # The same identifier each time, so that a new connection ends a half-dead old one.
        self._client_id = f"tidegate-tui-{secrets.token_hex(4)}"
        self._attempt = 1
        self._stopping = Event()
        self._hurry = Event()
        self._connection = self._new_connection()
        self._thread = Thread(target=self._run, name="gateway-client", daemon=True)

    def start(self) -> None:
        """Begin to connect."""
        self._thread.start()

    def stop(self) -> None:
        """Disconnect and end the thread, or leave it behind if it does not end in time."""
        self._stopping.set()
        self._hurry.set()
        self._thread.join(STOP_TIMEOUT)

    def retry_now(self) -> None:
        """Cut the wait for the next attempt short."""
        self._hurry.set()

    def subscribe(self) -> None:
        """Ask for everything that is shown, retained messages first."""
        self.heard = 0
        self.figures.clear()
        self.readings.clear()
        self._connection.subscribe(f"{self._topics.root}/#")
        self._connection.subscribe(self._topics.sensors)

    @property
    def hears(self) -> bool:
        """Whether everything that `subscribe` asks for comes from now on."""
        return self._connection.hears

    def order_uplink(self, word: str, name: str = "") -> None:
        """Send `pause` or `resume` to all uplinks or one; the answer is posted as OrderAnswered."""
        topic = self._topics.uplink_order
        self._connection.order(f"{topic}/{name}" if name else topic, word)

    def _new_connection(self) -> Connection:
        return Connection(
            self._address, self._client_id, self._on_connected, self._on_heard, self._post
        )

    def _run(self) -> None:
        reason = ""
        while not self._stopping.is_set():
            self._hurry.clear()
            self._post(LinkChanged(Link(Phase.CONNECTING, self._attempt, reason)))
            self._connection = self._new_connection()
            reason = self._connection.run(self._stopping.is_set)
            if not self._stopping.is_set():
                self._wait(reason)

    def _wait(self, reason: str) -> None:
        delay = delay_after(self._attempt)
        self._attempt += 1
        self._post(LinkChanged(Link(Phase.WAITING, self._attempt, reason, now() + delay)))
        self._hurry.wait(delay)

    def _on_connected(self) -> None:
        self._attempt = 0
        self._post(LinkChanged(Link(Phase.CONNECTED)))

    def _on_heard(self, topic: str, payload: bytes, retained: bool) -> None:
        self.heard += 1
        inbox = self.figures if topic.startswith(f"{self._topics.root}/") else self.readings
        inbox.put(Arrival(topic, payload, retained, now()))
