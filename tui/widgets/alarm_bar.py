"""The gateway's alarms, above everything else."""

from textual.content import Content

from tui.state import Alarm
from tui.text import time_of_day
from tui.widgets.live import Live

MOST_SHOWN = 3
"""alarms; more are counted in a last line"""


class AlarmBar(Live):
    """One line for each alarm, the latest first; hidden while there is none."""

    def __init__(self) -> None:
        super().__init__(id="alarm-bar")

    def show(self, alarms: dict[str, Alarm]) -> None:
        """Draw these alarms."""
        self.display = bool(alarms)
        latest = sorted(alarms.items(), key=lambda item: item[1].raised or 0.0, reverse=True)
        lines = [
            f" ▲ ALARM {name} since {time_of_day(alarm.raised)}: {alarm.text}"
            for name, alarm in latest[:MOST_SHOWN]
        ]
        if len(latest) > MOST_SHOWN:
            lines.append(f" ▲ and {len(latest) - MOST_SHOWN} more")
        self.put(Content("\n".join(lines)))
