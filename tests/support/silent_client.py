"""Stands for a gateway's client: keeps what is asked of it, and tells what a test says."""

import json
from collections.abc import Sequence
from queue import SimpleQueue

from tui.inbox import Arrival, Inbox
from tui.link import Acknowledged, Answered, Link, LinkEvent, Phase
from tui.record import Replay
from tui.session import Session


class SilentClient(Replay):
    """Answers the queries in `answers`, by name; those in `refused` with a PUBACK that refuses."""

    client_id = "tidegate-tui-00000000"

    def __init__(self) -> None:
        self.inbox = Inbox()
        self.events: SimpleQueue[LinkEvent] = SimpleQueue()
        self.received_at = 1_000.0
        self.now = 1_000.0
        self.answers: dict[str, dict[str, object]] = {}
        self.refused = ""
        self.queried: list[tuple[str, dict[str, object]]] = []
        self.orders: list[tuple[str, str]] = []
        self.published: list[tuple[str, bytes]] = []
        self.subscribed: list[tuple[str, int]] = []
        self.unsubscribed: list[str] = []
        self.wheres: list[str] = []
        self.passwords: list[str | None] = []

    def __str__(self) -> str:
        return "mqtt://barn:1883"

    def clock(self) -> float:
        return self.now

    def start(self) -> None:
        """Begin nothing."""

    def retry_now(self, password: str | None = None) -> None:
        self.passwords.append(password)

    def subscribe(self, topic_filters: Sequence[str], every: int = 0, where: str = "") -> None:
        self.subscribed += [(each, every) for each in topic_filters]
        self.wheres.append(where)

    def unsubscribe(self, topic_filters: Sequence[str]) -> None:
        self.unsubscribed += topic_filters

    def ask(self, key: str, query: str, request: bytes) -> None:
        self.queried.append((query, json.loads(request)))
        if self.refused:
            self.events.put(Acknowledged(key, self.refused))
        elif query in self.answers:
            document = {"query": query, "time": round(self.now * 1_000), **self.answers[query]}
            self.events.put(Answered(key, json.dumps(document).encode()))

    def order(self, key: str, part: str, word: str) -> None:
        self.orders.append((part, word))
        self.events.put(Acknowledged(key, ""))

    def publish(self, key: str, topic: str, payload: bytes) -> None:
        self.published.append((topic, payload))
        self.events.put(Acknowledged(key, ""))


class Bench:
    """A session on a silent client, with a clock that the test moves."""

    def __init__(self, *, connected: bool = True) -> None:
        self.client = SilentClient()
        self.copied: list[str] = []
        self.session = Session(self.client, copy=self.copied.append)
        if connected:
            self.client.events.put(Link(Phase.CONNECTED))
        self.pass_time(0)

    def pass_time(self, seconds: float = 0.0, *, hears: bool = True) -> None:
        """Let so much time pass, in which something is heard or nothing."""
        self.client.now += seconds
        if hears:
            self.client.received_at = self.client.now
        for _ in range(3):  # what is asked in one tick is answered in the next
            self.session.tick(self.client.now, lambda: 0.0)

    def tell(self, *, retained: object = True, **figures: object) -> None:
        """Have the gateway tell figures; `__` in a name stands for `/`."""
        for name, value in figures.items():
            topic = f"$SYS/broker/{name.replace('__', '/')}"
            payload = str(value).encode()
            self.client.inbox.put(Arrival(topic, payload, bool(retained), self.client.now))
        self.pass_time(0)

    def hear(self, topic: str, payload: bytes, *, retained: bool = False) -> None:
        """Have a message come."""
        self.client.inbox.put(Arrival(topic, payload, retained, self.client.now))
        self.pass_time(0)

    def round(self, uptime: int, **figures: object) -> None:
        """Have a second pass, and a round of figures come."""
        self.pass_time(1)
        self.tell(retained=False, uptime=f"{uptime} seconds", **figures)

    def press(self, *keys: str) -> None:
        """Press keys, and let what follows happen."""
        names = {"/": "slash", ":": "colon", "?": "question_mark", "$": "dollar_sign"}
        for key in keys:
            self.session.key(names.get(key, key), key if len(key) == 1 else None)
            self.pass_time(0)
            self.screen()

    def type(self, text: str) -> None:
        """Type a text and enter."""
        self.press(*text, "enter")

    def screen(self, cells: int = 80, height: int = 24) -> str:
        """Return what is shown."""
        lines = self.session.draw(cells, height)
        assert len(lines) == height
        return "\n".join("".join(text for text, _ in each) for each in lines)

    def styles(self, text: str, cells: int = 80, height: int = 24) -> set[str]:
        """Return the styles of the pieces that have this text."""
        lines = self.session.draw(cells, height)
        return {style for each in lines for piece, style in each if text in piece}
