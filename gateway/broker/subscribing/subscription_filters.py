"""Expressions that the configuration attaches to clients' subscriptions.

MQTT 3.1.1 has no user properties, and so no `$where` ($where language, section 12.1).
"""

from collections.abc import Callable, Iterable

from gateway.broker.client_classes import client_matcher
from gateway.settings.broker import SubscriptionFilter
from gateway.where.compile import Where, compile_where


class SubscriptionFilters:
    """Finds the expression for a subscription without its own; `wheres` are all of them."""

    __slots__ = ("_by_topic_filter", "wheres")

    def __init__(self, filters: Iterable[SubscriptionFilter]) -> None:
        self._by_topic_filter: dict[str, list[tuple[Callable[[str], bool], Where]]] = {}
        wheres: dict[str, Where] = {}
        for each in filters:
            if each.where not in wheres:
                wheres[each.where] = compile_where(each.where)
            entry = (client_matcher(each.client), wheres[each.where])
            self._by_topic_filter.setdefault(each.topic_filter, []).append(entry)
        self.wheres = list(wheres.values())

    def find(self, client_id: str, topic_filter: str) -> Where | None:
        """Return the expression of the first matching entry, None if there is none."""
        for matches, where in self._by_topic_filter.get(topic_filter, ()):
            if matches(client_id):
                return where
        return None
