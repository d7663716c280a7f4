"""Plots of the figures that the gateway keeps the course of."""

from collections.abc import Callable, Sequence
from typing import Any

from tui.line import MUTED, Line, beside, box, line
from tui.plot import plot
from tui.series import SPANS, Course
from tui.text import moment
from tui.view import Action, View

Plot = tuple[str, str, Callable[[Course, int], list[float | None]]]
PLOTS: Sequence[Plot] = (
    ("in, messages/s", "plot", lambda course, back: course.incoming(back)),
    ("waiting for the fleet", "plot2", lambda course, back: course.values("outbox_messages", back)),
    ("up, messages/s", "plot", lambda course, back: course.values("acknowledged", back)),
)
"""what is plotted: its name, its style, its values"""


def plot_actions(session: Any) -> list[Action]:
    """Return what the keys do with all plots together."""

    def change_span(by: int) -> None:
        session.span = min(len(SPANS) - 1, max(0, session.span + by))
        session.back = 0

    def go_back(by: int) -> None:
        steps = SPANS[session.span][1]
        session.back = min(steps * 3 // 4, max(0, session.back + by * (steps // 10)))

    return [
        Action("]", "longer plots", lambda: change_span(1)),
        Action("[", "shorter plots", lambda: change_span(-1), quiet=True),
        Action("left", "plots back", lambda: go_back(1), "←"),
        Action("right", "plots forward", lambda: go_back(-1), "→", quiet=True),
    ]


def plots(view: View, cells: int, height: int, shown: Sequence[Plot]) -> list[Line]:
    """Return plots side by side over the span that the session has."""
    session = view.session
    step, _, called = SPANS[session.span]
    course = session.courses[step]
    begin, end = course.times(session.back)
    when = f"last {called}"
    if session.back:
        when = f"{called} until {moment(end, session.now)}"
    parts = []
    for index, (name, style, values_of) in enumerate(shown):
        wide = cells // len(shown) + (index < cells % len(shown))
        values = values_of(course, session.back)
        if any(each is not None for each in values):
            lines = plot(values, wide - 4, height - 2, begin, end, style=style)
        else:
            why = view.old(course.query(), session.now)
            lines = [line((why or "not known yet", MUTED))]
        parts.append(box(name, lines, wide, height, when if wide > 34 else ""))
    return beside(*parts)
