"""The topic aliases that the server sets on one network connection (MQTT 5, section 3.3.2.3.4)."""

from collections import OrderedDict

from gateway.mqtt.aliases.topic_aliases import ALIAS_PROPERTY, AliasBudget

STRING_LENGTH = 2
"""Bytes of the length before a topic name; 0 if there is no name."""

SHORTEST_TOPIC = STRING_LENGTH + ALIAS_PROPERTY + 2
"""Bytes of the shortest topic name, after its length, that gets an alias: it saves at least these.

The property may make the property length a byte longer.
"""

MAPPING_OVERHEAD = 200
"""Bytes of the objects around a topic name that has an alias (64-bit CPython 3.11 to 3.13)."""

MAXIMUM_PATIENCE = 32
"""The most topics that are sent without an alias between two replacements."""

USES_OF_A_GOOD_MAPPING = 8
"""Packets without the topic name after which a replaced mapping was worth its packet."""


class Mapping:
    """A topic name's alias, and how many packets have used it without the name since."""

    __slots__ = ("alias", "uses")

    def __init__(self, alias: int) -> None:
        self.alias = alias
        self.uses = 0


class OutboundAliases:
    """The topic aliases that were sent to the client of one connection.

    There are at most `maximum`, within the budget. While there is capacity a topic gets one with
    its first packet: that costs 3 bytes, while waiting for a second packet would cost a whole name.
    Later a topic replaces the one used least recently, though not every time. If topics repeat in a
    cycle longer than the table, every replacement is wasted. So replacing a mapping that was little
    used doubles the wait until the next replacement, and replacing a well used one halves it
    (docs/understand/decisions/2026-11-21-outbound-topic-aliases.md).

    A mapping is valid from its packet on, so the caller must append that to the connection's output
    before it chooses the next alias. The output keeps the order, and loses nothing but its end,
    together with the connection and this table.
    """

    __slots__ = (
        "_budget",
        "_bytes",
        "_free",
        "_mappings",
        "_maximum",
        "_patience",
        "_waited",
    )

    def __init__(self, maximum: int, budget: AliasBudget) -> None:
        self._maximum = maximum
        self._budget = budget
        self._mappings: OrderedDict[bytes, Mapping] = OrderedDict()  # least recently used first
        self._bytes = 0
        self._free: list[int] = []  # unused aliases; at most `maximum`
        self._patience = 1
        self._waited = 0

    @property
    def figures(self) -> dict[str, int]:
        """The most aliases allowed, how many are in use, and how often they were used."""
        uses = sum(mapping.uses for mapping in self._mappings.values())
        return {"maximum": self._maximum, "used": len(self._mappings), "hits": uses}

    def choose(self, topic: bytes) -> tuple[int, bool]:
        """Return the next packet's topic alias, 0 for none, and whether the client knows it.

        `topic` is in UTF-8, after its length. An unknown alias must be sent with the topic name.
        """
        figures = self._budget.figures
        mapping = self._mappings.get(topic)
        if mapping is not None:
            mapping.uses += 1
            self._mappings.move_to_end(topic)
            figures.hits += 1
            figures.bytes_saved += len(topic) - STRING_LENGTH - ALIAS_PROPERTY
            return mapping.alias, True
        figures.misses += 1
        size = len(topic) + MAPPING_OVERHEAD
        if len(topic) < SHORTEST_TOPIC or not self._admit(size):
            return 0, False
        figures.mappings += 1
        figures.bytes_saved -= ALIAS_PROPERTY
        return self._add(topic, size), False

    def close(self) -> None:
        """Forget every alias: the connection has ended."""
        self._budget.figures.bytes_held -= self._bytes
        self._bytes = 0
        self._mappings.clear()
        self._free.clear()

    def _add(self, topic: bytes, size: int) -> int:
        alias = self._free.pop() if self._free else len(self._mappings) + 1
        self._mappings[topic] = Mapping(alias)
        self._bytes += size
        self._budget.figures.bytes_held += size
        return alias

    def _admit(self, size: int) -> bool:
        """Return whether one more topic may have an alias, replacing another if necessary.

        At the connection's own bounds and at the soft limit it keeps its number of aliases; at the
        hard limit it loses all of them.
        """
        budget, figures = self._budget, self._budget.figures
        if size > budget.client_bytes:
            return False
        fits = len(self._mappings) < self._maximum and self._fits(size)
        if fits and figures.bytes_held + size > budget.soft_bytes:
            figures.refused_soft += 1
            fits = False
        if not fits and not self._replace(size):
            return False
        if figures.bytes_held + size > budget.hard_bytes:
            figures.refused_hard += 1
            figures.evictions += len(self._mappings)
            self.close()
            return False
        return True

    def _fits(self, size: int) -> bool:
        return self._bytes + size <= self._budget.client_bytes

    def _replace(self, size: int) -> bool:
        """If it is time, remove the mapping used least recently, and more until `size` fits."""
        self._waited += 1
        if self._waited < self._patience or not self._mappings:
            return False
        self._waited = 0
        if self._evict().uses < USES_OF_A_GOOD_MAPPING:
            self._patience = min(self._patience * 2, MAXIMUM_PATIENCE)
        else:
            self._patience = max(self._patience // 2, 1)
        while not self._fits(size):
            self._evict()
        return True

    def _evict(self) -> Mapping:
        topic, mapping = self._mappings.popitem(last=False)
        size = len(topic) + MAPPING_OVERHEAD
        self._bytes -= size
        self._free.append(mapping.alias)
        self._budget.figures.bytes_held -= size
        self._budget.figures.evictions += 1
        return mapping
