"""The `$where` expressions in use, each compiled once however many subscriptions share it."""

from weakref import WeakValueDictionary

from gateway.routing.where.compile import Where, compile_where


class TooManyExpressions(Exception):  # noqa: N818 - the name of a quota, not of a mistake
    """The broker's quota of distinct expressions is used up."""


class Expressions:
    """Compiled expressions by their text, and whether they may ask who published a message.

    One is forgotten with its last subscription.
    """

    __slots__ = ("_limit", "_wheres")

    def __init__(self, limit: int) -> None:
        self._wheres: WeakValueDictionary[tuple[str, bool], Where] = WeakValueDictionary()
        self._limit = limit

    def __len__(self) -> int:
        return len(self._wheres)

    def in_use(self) -> list[Where]:
        """Return the compiled expressions."""
        return list(self._wheres.values())

    def get(self, text: str, *, identity: bool = True) -> Where:
        """Return the compiled expression; raise WhereError or TooManyExpressions."""
        where = self._wheres.get((text, identity))
        if where is None:
            where = compile_where(text, identity=identity)
            if len(self._wheres) >= self._limit:
                raise TooManyExpressions(f"all {self._limit} distinct expressions are in use")
            self._wheres[text, identity] = where
        return where
