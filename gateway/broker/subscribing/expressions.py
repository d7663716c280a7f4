"""The `$where` expressions in use, and those that the configuration attaches to some.

MQTT 3.1.1 has no user properties, and so no `$where` ($where language, section 12.1).
"""

import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary, finalize

from gateway.broker.client_classes import client_matcher
from gateway.broker.shares import Shares
from gateway.pieces import Pieces, complete
from gateway.session.session import Session
from gateway.settings.broker import SubscriptionFilter

if TYPE_CHECKING:
    from gateway.where.compile import Where

COMPILER = (
    *("gateway.where.language.conversions", "gateway.where.language.expression"),
    *("gateway.where.language.functions", "gateway.where.language.lexer"),
    *("gateway.where.language.parser", "gateway.where.evaluation.closures"),
    "gateway.where.compile",
)
"""The modules that compile an expression, in the order of their imports. A gateway without any is
spared 0.7 MiB, and imported at once they take 10 ms."""


def import_in_pieces() -> Pieces[None]:
    """Import them, each of those that are not in memory in a piece of its own."""
    for name in COMPILER:
        if name not in sys.modules:
            import_module(name)
            yield


class TooManyExpressions(Exception):  # noqa: N818 - the name of a quota, not of a mistake
    """The broker's limit of distinct expressions is reached."""


class Expressions:
    """Compiled expressions by their text, and whether they may use the publisher's identity.

    An expression is forgotten with its last subscription. Until then it counts to the share of the
    client that first used it.
    """

    __slots__ = ("_shares", "_wheres", "limit")

    def __init__(self, limit: int, shares: Shares | None = None) -> None:
        self._wheres: WeakValueDictionary[tuple[str, bool], Where] = WeakValueDictionary()
        self.limit = limit
        self._shares = shares

    def __len__(self) -> int:
        return len(self._wheres)

    def in_use(self) -> "list[Where]":
        """Return the compiled expressions."""
        return list(self._wheres.values())

    def get(
        self,
        text: str,
        session: Session | None = None,
        *,
        identity: bool = True,
        always: bool = False,
    ) -> "Where":
        """Return the compiled expression; raise WhereError or TooManyExpressions.

        A session may have its share of them; a restored one is `always` accepted.
        """
        return complete(self.get_in_pieces(text, session, identity=identity, always=always))

    def get_in_pieces(
        self,
        text: str,
        session: Session | None = None,
        *,
        identity: bool = True,
        always: bool = False,
    ) -> "Pieces[Where]":
        """Do the same in pieces; one that is in use takes none."""
        where = self._wheres.get((text, identity))
        if where is not None:
            return where
        if COMPILER[-1] not in sys.modules:
            yield from import_in_pieces()
        from gateway.where.compile import compile_in_pieces

        made = yield from compile_in_pieces(text, identity=identity)
        where = self._wheres.get((text, identity))
        if where is not None:  # another session compiled the same one between two pieces
            return where
        if len(self._wheres) >= self.limit:
            raise TooManyExpressions(f"all {self.limit} distinct expressions are in use")
        if session is not None and self._shares is not None:
            self._count(self._shares, made, session, always=always)
        self._wheres[text, identity] = made
        return made

    @staticmethod
    def _count(shares: Shares, where: "Where", session: Session, *, always: bool) -> None:
        client_id, holder = session.client_id, session.holder
        if not always and shares.refuse(shares.expressions, client_id, holder):
            raise TooManyExpressions(shares.refusal)
        shares.expressions.add(client_id, holder)
        finalize(where, shares.expressions.remove, client_id)


class SubscriptionFilters:
    """Finds the expression for a subscription without its own; `wheres` are all of them."""

    __slots__ = ("_by_topic_filter", "wheres")

    def __init__(self, filters: Iterable[SubscriptionFilter]) -> None:
        self._by_topic_filter: dict[str, list[tuple[Callable[[str], bool], Where]]] = {}
        wheres: dict[str, Where] = {}
        for each in filters:
            if each.where not in wheres:
                from gateway.where.compile import compile_where

                wheres[each.where] = compile_where(each.where)
            entry = (client_matcher(each.client), wheres[each.where])
            self._by_topic_filter.setdefault(each.topic_filter, []).append(entry)
        self.wheres = list(wheres.values())

    def find(self, client_id: str, topic_filter: str) -> "Where | None":
        """Return the expression of the first matching entry, None if there is none."""
        for matches, where in self._by_topic_filter.get(topic_filter, ()):
            if matches(client_id):
                return where
        return None
