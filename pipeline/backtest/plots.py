"""Plots of a back test: what it would save by day, and what a reader would have seen."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from plotly.graph_objects import Bar, Figure, Scatter
from plotly.offline import get_plotlyjs

from pipeline.backtest.result import Point, Worst

HEIGHT = 380
"""Of a plot, in pixels."""
ALL, SENT, RAW, KEPT, WORST = "#c8cdd3", "#2b6cb0", "#9aa3ad", "#c05621", "#9b2c2c"
EDGE = 0.2
"""So near the edge of a plot, as a share of its width, words begin or end at their moment."""
MARKED = 300
"""Readings that are drawn as points, too; of more only the line."""


def script() -> str:
    """Return the program that draws, which the page has once."""
    return f"<script>{get_plotlyjs()}</script>"


def bytes_by_day(days: Sequence[tuple[str, int, int]]) -> str:
    """Return a plot of the bytes of each day, all and sent."""
    names, every, sent = zip(*days, strict=True) if days else ((), (), ())
    figure = Figure()
    figure.add_trace(Bar(x=names, y=every, name="all messages", marker_color=ALL))
    figure.add_trace(Bar(x=names, y=sent, name="would be sent", marker_color=SENT))
    figure.update_layout(barmode="overlay", hovermode="x unified")
    return _drawn(figure, "bytes", "day (UTC)", "bytes a day", "%Y-%m-%d")


def readings(worst: Worst) -> str:
    """Return a plot of raw values, and of what a reader has who takes the last one sent."""
    figure = Figure()
    points, unit = worst.points, worst.unit
    mode = "lines+markers" if len(points) <= MARKED else "lines"
    times = [_time(ms) for ms, _, _ in points]
    raw = [value for _, value, _ in points]
    kept = list(_kept(points, worst.held))
    line = {"color": RAW, "width": 1}
    figure.add_trace(Scatter(x=times, y=raw, name="every reading", mode=mode, line=line))
    line = {"color": KEPT, "width": 2, "shape": "hv"}
    figure.add_trace(Scatter(x=times, y=kept, name="what a reader has", mode="lines", line=line))
    sent = [(_time(ms), value) for ms, value, is_sent in points if is_sent]
    if 0 < len(sent) <= MARKED:
        x, y = zip(*sent, strict=True)
        figure.add_trace(Scatter(x=x, y=y, name="sent", mode="markers", marker_color=KEPT))
    if worst.worst_ms is not None and points:
        _mark(figure, worst, worst.worst_ms)
    if not points:
        figure.add_annotation(text="no readings", showarrow=False)
    figure.update_layout(hovermode="x")
    title = f"value in {unit}" if unit else "value"
    return _drawn(figure, "curves", "time (UTC)", title, "%Y-%m-%d %H:%M:%S")


def _mark(figure: Figure, worst: Worst, moment: int) -> None:
    """Mark the worst moment; the words beside it stay within the plot."""
    what = "nothing is sent"
    if worst.error is not None:
        what = f"largest error {worst.error:g} {worst.unit}".rstrip()
    first, last = worst.points[0][0], worst.points[-1][0]
    share = (moment - first) / max(last - first, 1)
    anchor = "left" if share < EDGE else "right" if share > 1 - EDGE else "center"
    figure.add_vline(_time(moment), line_color=WORST, line_dash="dash")
    figure.add_annotation(
        x=_time(moment), yref="paper", y=1, text=f"{what}, {_time(moment):%Y-%m-%d %H:%M:%S} UTC",
        showarrow=False, yanchor="bottom", xanchor=anchor,
    )  # fmt: skip


def _kept(points: Sequence[Point], held: float | None) -> Iterator[float | None]:
    """Yield the last value that was sent at each point, `held` before the first."""
    for _, value, sent in points:
        held = value if sent else held
        yield held


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC).replace(tzinfo=None)  # else in the local zone


def _drawn(figure: Figure, name: str, x: str, y: str, hover: str) -> str:
    figure.update_layout(
        template="plotly_white",
        height=HEIGHT,
        margin={"l": 70, "r": 20, "t": 60, "b": 60},
        legend={"orientation": "h", "y": 1.12, "yanchor": "bottom", "x": 0},
        xaxis={"title": x, "type": "date", "hoverformat": hover},
        yaxis={"title": y, "separatethousands": True},
    )
    drawn: str = figure.to_html(
        full_html=False,
        include_plotlyjs=False,
        div_id=name,
        config={"displaylogo": False, "responsive": True, "showSendToCloud": False},
    )
    return drawn
