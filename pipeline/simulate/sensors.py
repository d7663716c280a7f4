"""What the sensors of a made-up gateway say: units that change, states, totals, bad readings."""

import random
from typing import NamedTuple

HOSTILE = (
    b"", b"\xff\xfe\x00", b"null", b"[[[[", b'{"value":"\\ud800"}', b"'; DROP TABLE silver; --",
)  # fmt: skip
"""Payloads that are no readings."""
WITHOUT_VALUE = (
    b'{"value":1e999}',
    b'{"value":null}',
    b'{"value":NaN}',
    b'{"value":' + b"9" * 400 + b"}",
)
"""Readings without a value that can be."""
DOORS = 4
"""One of so many gateways has a door, since a state makes a row each minute."""


class Said(NamedTuple):
    """A message of a sensor, and what silver must say of it; no `node` if it is no reading."""

    topic: str
    payload: bytes
    node: str | None = None
    quantity: str | None = None
    instance: str | None = None
    value: float | None = None
    text: str | None = None
    unit: str | None = None
    bad: bool = False


class Sensors:
    """A thermometer that changes its unit, a meter, a door, one that says of itself it is wrong."""

    def __init__(self, chance: random.Random, index: int) -> None:
        self._chance = chance
        self._third = "door" if index % DOORS == 0 else "temperature"
        self._fahrenheit = False
        self._energy = 0.0
        self._open = False

    def say(self, number: int) -> Said:
        """Return the message of this number; five sensors take turns."""
        turn = number % 5
        said = (self._thermometer, self._meter, self._door, self._second, self._button)[turn]()
        said = said._replace(topic=_topic(turn, said), node=f"n{turn}")
        chance = self._chance.random()
        if chance < 0.005:
            return Said(said.topic, self._chance.choice(HOSTILE))
        if chance < 0.01:
            payload = self._chance.choice(WITHOUT_VALUE)
            return said._replace(payload=payload, value=None, text=None, unit=None, bad=False)
        return said

    def _thermometer(self) -> Said:
        if self._chance.random() < 0.02:
            self._fahrenheit = not self._fahrenheit
        celsius = 20 + 5 * self._chance.random()
        if self._fahrenheit:
            return _number("temperature", round(celsius * 9 / 5 + 32, 2), "°F")
        return _number("temperature", round(celsius, 2), "C")

    def _meter(self) -> Said:
        self._energy = 0.0 if self._chance.random() < 0.01 else self._energy
        self._energy = round(self._energy + self._chance.random(), 3)
        return _number("energy", self._energy, "kWh")

    def _door(self) -> Said:
        if self._third != "door":
            return self._thermometer()
        self._open ^= self._chance.random() < 0.3
        text = "open" if self._open else "closed"
        return Said("", b'{"value":"%s"}' % text.encode(), quantity="door", text=text)

    def _second(self) -> Said:
        if self._chance.random() < 0.03:
            payload = b'{"value":-127.0,"unit":"C","quality":"bad: no sensor"}'
            return _number("temperature", -127.0, "C", "a")._replace(payload=payload, bad=True)
        return _number("temperature", round(5 * self._chance.random(), 2), "C", "a")

    def _button(self) -> Said:
        return Said("", b'{"value":"press"}', quantity="button", text="press")


def _number(quantity: str, value: float, unit: str, instance: str | None = None) -> Said:
    payload = f'{{"value":{value!r},"unit":"{unit}"}}'.encode()
    return Said("", payload, None, quantity, instance, value, None, unit)


def _topic(node: int, said: Said) -> str:
    behind = "" if said.instance is None else f"/{said.instance}"
    return f"sensors/n{node}/{said.quantity}{behind}"
