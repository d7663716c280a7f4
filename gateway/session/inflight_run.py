"""Deliveries that were sent to one client in a run and not yet acknowledged."""

from collections.abc import Callable

from gateway.mqtt.acknowledgement_run import AcknowledgementRun
from gateway.session.delivery import Delivery
from gateway.session.message_run import MessageRun
from gateway.session.waiting_run import RunRow


class InflightRun:
    """A run of messages under consecutive packet identifiers, from `first` on.

    The first `done` are finished; of the rest those before `released` have had their PUBREC.
    `place` is the number of the first in the session's journal, 0 if they are not kept there.
    `row` is where they are kept together, if they are, and stay so when the run is opened.
    A run that is `opened` has become `deliveries`, from the first that was not done on; whoever
    holds a run lets go of it then, and goes on with these.
    """

    __slots__ = (
        "count",
        "deliveries",
        "done",
        "first",
        "on_opened",
        "order",
        "place",
        "qos",
        "released",
        "row",
        "run",
    )

    def __init__(self, run: MessageRun, first: int, qos: int) -> None:
        self.run = run
        self.qos = qos  # that they were sent with
        self.count = run.packets.count  # that were sent
        self.first = first
        self.order = 0  # of its sending, among what else is in the window
        self.done = 0
        self.released = 0
        self.place = 0
        self.on_opened: Callable[[InflightRun], None] | None = None  # where it is kept
        self.row: RunRow | None = None
        self.deliveries: list[Delivery] | None = None

    def acknowledged(self, acknowledgements: AcknowledgementRun, start: int) -> int:
        """Return how many of the first that are not done are acknowledged from `start` on."""
        sent = self.count if self.qos == 1 else self.released
        return acknowledgements.matches(start, self.first + self.done, sent - self.done)

    def received(self, acknowledgements: AcknowledgementRun, start: int) -> int:
        """Return how many of the first that are not released have their PUBREC there."""
        left = self.count - self.released
        return acknowledgements.matches(start, self.first + self.released, left)

    def open(self) -> list[Delivery]:
        """Return what is not done as deliveries of their own."""
        if self.deliveries is None:
            run = self.run
            self.deliveries = [Delivery(each, self.qos) for each in run.messages[self.done :]]
            if self.row is not None:
                self.row.opened(self.place + self.done, self.deliveries)
            elif self.on_opened is not None:
                self.on_opened(self)
        return self.deliveries
