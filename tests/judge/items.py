"""Messages and filters in short, as programs name them."""

from collections.abc import Callable
from dataclasses import dataclass, fields

from tests.conformance.support import wire
from tests.conformance.support.answers import Properties
from tests.judge.messages import Message

WHERE: dict[str, Callable[[Message], bool]] = {
    "payload.v > 4": lambda m: m.value is not None and m.value > 4,
    "payload.v = 3": lambda m: m.value == 3,
    "payload.v = 3 AND qos = 1": lambda m: m.value == 3 and m.qos == 1,
    "payload.v = 3 OR retain": lambda m: m.value == 3 or m.retain,
    "$payload_size < 50": lambda m: len(m.payload) < 50,
    "$user.site = 'A'": lambda m: (wire.USER_PROPERTY, (b"site", b"A")) in m.properties,
    "clientid = 'a'": lambda m: m.publisher == "a",
    "payload.v IS NULL": lambda m: m.value is None,
}
"""Filters, and what each says, judged by hand."""

PROPERTIES: list[Properties] = [
    [],
    [(wire.CONTENT_TYPE, b"application/json")],
    [(wire.USER_PROPERTY, (b"site", b"A"))],
    [(wire.PAYLOAD_FORMAT_INDICATOR, 1), (wire.USER_PROPERTY, (b"site", b"B"))],
    [
        (wire.RESPONSE_TOPIC, b"all/answers"),
        (wire.CORRELATION_DATA, b"\x00\xff"),
        (wire.USER_PROPERTY, (b"z", b"1")),
        (wire.USER_PROPERTY, (b"site", b"A")),
        (wire.USER_PROPERTY, (b"z", b"1")),
    ],
]


@dataclass(frozen=True, slots=True, repr=False)
class Item:
    """A message to publish, in short."""

    number: int
    topic: str
    qos: int = 0
    retain: bool = False
    size: int = 0
    value: int = 0
    properties: int = 0
    interval: int | None = None
    alias: int = 0

    def __repr__(self) -> str:
        said = [(each.name, getattr(self, each.name), each.default) for each in fields(self)]
        words = [f"{name}={value!r}" for name, value, default in said if value != default]
        return f"Item({', '.join(words)})"

    def message(self, publisher: str, version: int) -> Message:
        newest = version == wire.MQTT_5
        payload = b""
        if self.size:
            payload = f'{{"v":{self.value},"n":{self.number}'.encode()
            rest = self.size - len(payload) - len(b',"x":""}')
            payload += (b',"x":"' + b"x" * rest + b'"}') if rest > 0 else b"}"
        return Message(
            self.number,
            publisher,
            self.topic,
            payload,
            self.qos,
            self.retain,
            PROPERTIES[self.properties] if newest else [],
            self.interval if newest else None,
            self.value if payload else None,
        )
