"""All that is known of one sensor."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Sparkline

from tui.payload import as_text
from tui.sensors import MAX_PAYLOAD, Sensor
from tui.state import GatewayState
from tui.text import amount, span, time_of_day
from tui.widgets.live import Live

GONE = "This sensor was dropped from the list: too many others were heard since."


class SensorDetail(ModalScreen[None]):
    """A sensor's value, times, recent course and payload; escape leads back."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,enter,q", "dismiss", "Back")]

    def __init__(self, state: GatewayState, topic: str) -> None:
        super().__init__()
        self._state = state
        self._topic = topic
        self._figures = Live(id="detail-figures")
        self._course = Sparkline(id="detail-course")
        self._payload = Live(id="detail-payload")
        self._box = VerticalScroll(self._figures, self._course, self._payload, id="detail")
        self._box.border_subtitle = "escape: back"

    def compose(self) -> ComposeResult:
        """Yield the box with the figures, the course and the payload."""
        yield self._box

    def show(self, now: float) -> None:
        """Draw the sensor as it is at this moment."""
        sensor = self._state.sensors.get(self._topic)
        if sensor is None:
            self._figures.put(Content(GONE))
            return
        self._box.border_title = Content(sensor.shown_name)
        late = self._state.sensors.is_late(sensor, now)
        rows = [(name, text) for name, text in _rows(sensor, now, late=late) if text]
        self._figures.put(Content("\n").join(_line(name, text) for name, text in rows))
        self._course.display = len(sensor.recent) > 1
        if self._course.data != list(sensor.recent):
            self._course.data = list(sensor.recent)
        self._payload.put(_line("payload", as_text(sensor.payload, MAX_PAYLOAD)))


def _line(name: str, text: str) -> Content:
    return Content.assemble((f"{name:<10}", "$text-muted"), text)


def _rows(sensor: Sensor, now: float, *, late: bool) -> list[tuple[str, str]]:
    reading = sensor.reading
    usual = sensor.usual_interval
    return [
        ("topic", sensor.topic if sensor.topic.isprintable() else sensor.shown_name),
        ("value", f"{reading.text} {reading.unit}"),
        ("updated", _updated(sensor, now, late=late)),
        ("measured", f"{time_of_day(reading.time)} by the sender's clock" if reading.time else ""),
        ("usually", f"every {usual:.1f} s" if usual is not None else ""),
        ("messages", f"{amount(sensor.messages)} seen here"),
        ("recent", _extremes(sensor)),
    ]


def _updated(sensor: Sensor, now: float, *, late: bool) -> str:
    age = sensor.age(now)
    if age is None:
        return "at an unknown time: retained by the gateway"
    silent = ", late" if late else ""
    retained = ", retained by the gateway" if sensor.retained else ""
    return f"{time_of_day(sensor.updated)}, {span(age)} ago{silent}{retained}"


def _extremes(sensor: Sensor) -> str:
    recent = sensor.recent
    if not recent:
        return ""
    mean = sum(recent) / len(recent)
    return f"{min(recent):.7g} min · {mean:.7g} mean · {max(recent):.7g} max"
