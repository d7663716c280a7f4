"""The `$where` expressions in use, each compiled once for all its subscriptions."""

from weakref import WeakValueDictionary, finalize

from gateway.broker.shares import Shares
from gateway.pieces import Pieces, complete
from gateway.session.session import Session
from gateway.where.compile import Where, compile_in_pieces


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

    def in_use(self) -> list[Where]:
        """Return the compiled expressions."""
        return list(self._wheres.values())

    def get(
        self,
        text: str,
        session: Session | None = None,
        *,
        identity: bool = True,
        always: bool = False,
    ) -> Where:
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
    ) -> Pieces[Where]:
        """Do the same in pieces; one that is in use takes none."""
        where = self._wheres.get((text, identity))
        if where is not None:
            return where
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
    def _count(shares: Shares, where: Where, session: Session, *, always: bool) -> None:
        client_id, holder = session.client_id, session.holder
        if not always and shares.refuse(shares.expressions, client_id, holder):
            raise TooManyExpressions(shares.refusal)
        shares.expressions.add(client_id, holder)
        finalize(where, shares.expressions.remove, client_id)
