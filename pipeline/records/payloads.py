"""The readings in a payload: by its topic, or by a mapping of one's own."""

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa

from gateway.bridges.readings import reading as published
from gateway.bridges.readings.reading import RefusedReadingError, instance_name
from gateway.bridges.readings.reading_map import Found
from gateway.bridges.readings.registry import quantity_name, unit_name
from gateway.bridges.topics.mapping import Mapping, Named, TopicPattern
from gateway.mqtt.topics import topic_matches
from pipeline.records.declarations import FleetMapping
from pipeline.records.reading import TOPICS_REMEMBERED, Reading, decode, reading_of
from pipeline.tables.arrays import Array

NO_JSON = "not a JSON object, number or boolean, as its mapping expects"


class Payloads:
    """Decodes messages; each is read by the first mapping that has its topic."""

    def __init__(self, mappings: Sequence[FleetMapping]) -> None:
        self._known = [(each.gateway, Mapping(each)) for each in mappings]
        self._mapping_of = lru_cache(TOPICS_REMEMBERED)(self._find)

    def of_batch(
        self, gateways: pa.Array, topics: pa.Array, payloads: Sequence[bytes]
    ) -> tuple[list[Reading], Array | None]:
        """Return the readings of messages, and of which message each is; None if each has one."""
        named = topics.to_pylist()
        if not self._known:
            return list(map(decode, named, payloads)), None
        found = list(map(self.readings, gateways.to_pylist(), named, payloads))
        rows = np.repeat(np.arange(len(found)), [len(each) for each in found])
        return [each for of_message in found for each in of_message], rows

    def readings(self, gateway_id: str, topic: str, payload: bytes) -> list[Reading]:
        """Return the readings of a message, or one Reading with its text or its error.

        A reading on the topic of a series is that whatever the mappings say.
        """
        plain = decode(topic, payload)
        if plain.quantity is not None:
            return [plain]
        found = self._mapping_of(gateway_id, topic)
        if found is None:
            return [plain]
        mapping, pattern = found
        named = mapping.read(pattern, topic, payload)
        if named is None:
            broken = payload.lstrip().startswith(b"{")
            return [plain._replace(decode_error=NO_JSON) if broken else plain]
        if not named.node:
            return [plain._replace(decode_error="the message names no node")]
        return list(_readings(mapping, named)) or [plain]

    def _find(self, gateway_id: str, topic: str) -> tuple[Mapping, TopicPattern] | None:
        for gateway, mapping in self._known:
            if gateway in (None, gateway_id):
                for pattern in mapping.patterns:
                    if topic_matches(pattern.topic_filter, topic):
                        return mapping, pattern
        return None


def _readings(mapping: Mapping, named: Named) -> Iterator[Reading]:
    taken: set[tuple[str, str]] = set()
    for each in mapping.map.readings(named.fields):
        quantity, unit = quantity_name(each.quantity), unit_name(each.unit)
        instance = _instance(each, named.instance, quantity, taken)
        taken.add((quantity, instance))
        body: dict[str, object] = {"value": each.value, "unit": unit, "time": named.time}
        found = reading_of((named.node, quantity, instance or None), body)
        fault = _fault(named.node, quantity, instance, unit)
        yield found._replace(decode_error=fault) if fault else found


def _instance(found: Found, instance: str, quantity: str, taken: set[tuple[str, str]]) -> str:
    """Return a value's instance, different from those before it in its message.

    An object with an identity always has that as its instance: nothing else of it stays the same
    when others come and go.
    """
    own = found.identity or found.instance or instance
    if (quantity, own) not in taken:
        return own
    labels = (instance_name(f"{own}-{label}" if own else label) for label in found.labels)
    return next(label for label in labels if (quantity, label) not in taken)


def _fault(node: str, quantity: str, instance: str, unit: str | None) -> str:
    """Return why no reading may have such names; empty if one may."""
    try:
        published.Reading(node, quantity, 0, unit, 0, instance)
    except RefusedReadingError as refused:
        return str(refused)
    return ""
