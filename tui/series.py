"""The course of figures that the gateway keeps, put together from its answers to `series`."""

from collections.abc import Sequence

from tui.queries import Document, Query, number, query

SPANS = ((1, 599, "10 min"), (10, 1_079, "3 h"), (60, 1_439, "24 h"))
"""seconds of a step, how many steps are shown, and how that is called"""
RENEWED = 30
"""steps that are asked for once the rest is known"""
FIGURES = (
    "messages_in", "readings", "queries", "messages_out", "sys_messages_out",
    "outbox_messages", "acknowledged",
)  # fmt: skip
OLDER = tuple(name for name in FIGURES if name not in ("readings", "queries"))
"""figures that an older gateway knows"""


class Course:
    """The values of figures at one step, by the number of the step since 1970."""

    def __init__(self, step: int, steps: int) -> None:
        self.step = step
        self.steps = steps
        self.end = 0
        """the number of the step after the last one known"""
        self._values: dict[str, dict[int, float]] = {}
        self._names: Sequence[str] = FIGURES

    def query(self) -> Query:
        """Return what to ask: everything at first, then the newest."""
        most = min(self.steps, 8_192 // len(self._names))
        last = RENEWED if self.end else most
        every = max(1.0 if self.end else 0.0, min(self.step * 10.0, 60.0))
        return query("series", every, figures=",".join(self._names), step=self.step, last=last)

    def apply(self, document: Document, error: str) -> None:
        """Take an answer, or a refusal: an older gateway has fewer figures."""
        if error.startswith("there is no figure"):
            self._names = OLDER
        figures, until = document.get("figures"), number(document.get("until"))
        if not isinstance(figures, dict) or until is None or document.get("step") != self.step:
            return
        end = round(until / 1_000 / self.step)
        if self.end and end - self.end > RENEWED:
            self._values.clear()  # a gap: ask for all of it again
            self.end = 0
            return
        for name, values in figures.items():
            if isinstance(values, list):
                known = self._values.setdefault(str(name), {})
                for index, value in enumerate(reversed(values), 1):
                    if (found := number(value)) is not None:
                        known[end - index] = found
                for old in [at for at in known if at < end - self.steps]:
                    del known[old]
        self.end = max(self.end, end)

    def values(self, name: str, back: int = 0) -> list[float | None]:
        """Return the values of a figure, the oldest first, up to `back` steps before now."""
        known, end = self._values.get(name, {}), self.end - back
        return [known.get(at) for at in range(end - self.steps, end)] if known else []

    def incoming(self, back: int = 0) -> list[float | None]:
        """Return the messages a second in, without what asks the gateway questions."""
        return _sum(
            self.values("messages_in", back),
            self.values("readings", back),
            [None if each is None else -each for each in self.values("queries", back)],
        )

    def times(self, back: int = 0) -> tuple[float, float]:
        """Return when the values begin and end, in seconds since 1970."""
        end = (self.end - back) * self.step
        return end - self.steps * self.step, end


def _sum(first: list[float | None], *others: list[float | None]) -> list[float | None]:
    result = list(first)
    for other in others:
        for index, value in enumerate(other[: len(result)]):
            before = result[index]
            if before is not None and value is not None:
                result[index] = max(0.0, before + value)
    return result
