"""The way of a message: sensors, broker, outbox, fleet."""

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content

from tui import figures
from tui.signs import state_content
from tui.state import GatewayState
from tui.text import amount, fit, rate, size, span, sparkline
from tui.widgets.flow_arrow import FlowArrow
from tui.widgets.flow_stage import FlowStage, Line

STOPPED_STATES = frozenset({"paused", "waiting", "disconnected", "connecting", "off"})


class Flow(Horizontal):
    """Four boxes joined by arrows, each with its live figures."""

    def __init__(self) -> None:
        super().__init__(id="flow")
        self._sensors = FlowStage("SENSORS", id="stage-sensors")
        self._broker = FlowStage("BROKER", id="stage-broker")
        self._outbox = FlowStage("OUTBOX", id="stage-outbox")
        self._fleet = FlowStage("FLEET", id="stage-fleet")
        self._into_broker = FlowArrow(id="into-broker")
        self._into_outbox = FlowArrow(id="into-outbox")
        self._into_fleet = FlowArrow(id="into-fleet")

    def compose(self) -> ComposeResult:
        """Yield the boxes and the arrows between them."""
        yield self._sensors
        yield self._into_broker
        yield self._broker
        yield self._into_outbox
        yield self._outbox
        yield self._into_fleet
        yield self._fleet

    def show(self, state: GatewayState, now: float, *, connected: bool) -> None:
        """Draw the figures of this moment; without a connection the arrows stand still."""
        self._sensors.show(_sensor_lines(state, now, self._sensors.content_size.width))
        self._broker.show(_broker_lines(state))
        self._outbox.show(_outbox_lines(state, self._outbox.content_size.width))
        self._fleet.show(_fleet_lines(state, self._fleet.content_size.width))
        uplink, get_rate = state.word(figures.UPLINK_STATE), state.rates.get
        stopped = uplink if uplink in STOPPED_STATES else ""
        into = (
            state.incoming(),
            get_rate(figures.RULES_ACCEPTED),
            get_rate(figures.UPLINK_ACKNOWLEDGED),
        )
        broker, outbox, fleet = into if connected else (None, None, None)
        self._into_broker.show(broker, now)
        self._into_outbox.show(outbox, now)
        self._into_fleet.show(fleet, now, stopped)


def _sensor_lines(state: GatewayState, now: float, width: int) -> list[Line]:
    late = state.sensors.late(now)
    return [
        ("heard", amount(len(state.sensors))),
        ("late", Content.assemble((f"! {late:,}", "bold $text-warning")) if late else "0"),
        ("", Content.assemble((sparkline(state.traffic_history, width), "$primary"))),
    ]


def _broker_lines(state: GatewayState) -> list[Line]:
    return [
        ("in", rate(state.incoming())),
        ("out", rate(state.outgoing())),
        ("clients", amount(state.count(figures.CLIENTS))),
    ]


def _outbox_lines(state: GatewayState, width: int) -> list[Line]:
    rows = state.count(figures.OUTBOX_ROWS)
    oldest = span(state.count(figures.OUTBOX_OLDEST)) if rows else "none"
    course: Line = ("size", size(state.count(figures.OUTBOX_BYTES)))
    if any(state.outbox_history):
        course = ("", Content.assemble((sparkline(state.outbox_history, width), "$primary")))
    return [
        ("rows", Content.assemble((f"{amount(rows)} {tendency(state)}".rstrip(), "bold"))),
        ("oldest", oldest),
        course,
    ]


def _fleet_lines(state: GatewayState, width: int) -> list[Line]:
    error = state.word(figures.UPLINK_ERROR)
    destination = state.word(figures.UPLINK_DESTINATION) or "no destination"
    if len(destination) > width:
        destination = destination.partition("://")[2] or destination
    lines: list[Line] = [("", state_content(state.word(figures.UPLINK_STATE)))]
    if error:
        lines.append(("", Content.assemble((f"! {error}", "$text-error"))))
    else:
        lines.append(("delivered", rate(state.rates.get(figures.UPLINK_ACKNOWLEDGED))))
    lines.append(("", Content.assemble((fit(destination, width), "$text-muted"))))
    return lines


def tendency(state: GatewayState) -> str:
    """Return `▲` for an outbox that grows, `▼` for one that drains, else nothing."""
    history = state.outbox_history
    if len(history) < 2 or history[-1] == history[-2]:
        return ""
    return "▲" if history[-1] > history[-2] else "▼"
