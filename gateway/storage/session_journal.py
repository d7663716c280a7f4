"""The journal of one persistent session: what has changed since it was last written."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gateway.mqtt.output import Pledge
from gateway.session.delivery import Delivery
from gateway.session.inflight_message import InflightAlone
from gateway.session.inflight_run import InflightRun
from gateway.session.journal import PagedQueue, Take
from gateway.session.message_run import MessageRun
from gateway.session.waiting_run import Waiting, WaitingRun
from gateway.storage.kept_size import kept_size
from gateway.storage.run_row import RunRow
from gateway.storage.session_changes import Changes
from gateway.storage.session_record import SessionRecord

if TYPE_CHECKING:
    from gateway.storage.session_store import SessionStore


class SessionJournal(SessionRecord):
    """Fulfils `session.journal.Journal` with rows.

    A delivery has a place of its own in its session, from 1 and rising, while it is kept. Its
    commit may be put off as its message allows.
    """

    __slots__ = (
        "_last_place",
        "deliveries",
        "in_runs",
        "open",
        "queue",
    )

    def __init__(
        self,
        store: "SessionStore",
        number: int,
        client_id: str,
        last_place: int = 0,
        within: float = 0.0,
    ) -> None:
        super().__init__(store, number, client_id, within)
        self.deliveries = 0  # on disk
        self.open = True
        self.queue: PagedQueue | None = None
        self._last_place = last_place
        self.in_runs: dict[int, RunRow] = {}  # by place: single deliveries without a row

    def owe(self, delivery: Delivery) -> None:
        """Give the delivery its place and write it with its message."""
        within = delivery.message.commit_within
        if within is None:
            return
        self._write(delivery, self._begun().owed)
        self._store.gathering.firm(within)

    def owe_run(self, run: MessageRun) -> WaitingRun | None:
        """Write them as one row."""
        if run.commit_within is None:
            return None
        row = RunRow(self, self._last_place + 1, run)
        self._last_place = row.last
        self._begun().runs[row.place] = row
        self._store.messages.hold_run(run)
        self._store.gathering.firm(run.commit_within)
        return row.waiting()[0]

    def changed_run(self, row: RunRow) -> None:
        """Write what is left of it, at some time; if it is not written yet, nothing else is."""
        changes, left = self._begun(), row.left
        if not row.batch:
            if left:
                return
            del changes.runs[row.place]
            self._store.gathering.writer.elided_rows += 1
        else:
            if left:
                changes.begun_runs[row.place] = row
            else:  # its bytes are not kept until then
                changes.begun_runs.pop(row.place, None)
                changes.gone_runs.append((row.place if row.whole else row.last, row.last))
                changes.gone_messages += row.written
            self._store.gathering.put_off()
        if not left:
            elided = self._store.messages.release_run(row.run)
            self._store.gathering.writer.elided_rows += elided

    def lend(self, delivery: Delivery) -> None:
        """Do what `owe` does, but give the client the writer's commit delay."""
        pledge, within = delivery.message.pledge, delivery.message.commit_within
        gathering = self._store.gathering
        if pledge is None or within is None or not gathering.writer.commit_delay:
            self.owe(delivery)
            return
        self._write(delivery, self._begun().lent)
        delivery.pledge = pledge
        pledge.add()
        gathering.lend(within)

    def lends(self, qos: int, within: float | None) -> bool:
        """Return whether there is a commit delay in which clients may acknowledge."""
        return qos == 1 and (within is None or self._store.gathering.writer.commit_delay > 0)

    def lend_run(self, sent: InflightRun, pledge: Pledge) -> None:
        """Do what `lend` does; the messages have no rows before the run is opened."""
        sent.place = self._last_place + 1
        self._last_place += sent.count
        sent.on_opened = self._opened
        self._begun().lent_runs[sent.place] = sent
        sent.run.lent += 1
        pledge.add()
        gathering = self._store.gathering
        gathering.lend(sent.run.commit_within or 0.0)

    def done_run(self, sent: InflightRun) -> None:
        """Never write it."""
        if not sent.place:
            return
        changes, run = self._begun(), sent.run
        if changes.lent_runs.pop(sent.place, None) is None:
            del changes.owed_runs[sent.place]
        run.lent -= 1
        rows = 1 if run.lent or run.opened else 2  # the messages' own, if nobody's
        gathering = self._store.gathering
        gathering.writer.elided_rows += rows * sent.count
        if run.pledge is not None:
            run.pledge.settle()

    def _opened(self, sent: InflightRun) -> None:
        """Take down one by one what a run still owes."""
        changes, pledge = self._begun(), sent.run.pledge
        sent.run.lent -= 1
        lent = changes.lent_runs.pop(sent.place, None) is not None
        if not lent:
            del changes.owed_runs[sent.place]
        for place, delivery in enumerate(sent.open(), sent.place + sent.done):
            self._keep(delivery, place, changes.lent if lent else changes.owed)
            if pledge is not None:
                delivery.pledge = pledge
                pledge.add()
        if pledge is not None:
            pledge.settle()  # the run's own

    def lend_alone(self, message: InflightAlone) -> int:
        """Do what `lend` does; nothing is gathered before the message is opened."""
        self._last_place += 1
        message.place = self._last_place
        message.on_opened = self._opened_alone
        return self._store.lone.lend(message)

    def done_alone(self, message: InflightAlone) -> None:
        """Never write it, if that was not done."""
        if message.opened:
            self.done(message.delivery)
        else:
            self._store.lone.done(message)
            if message.pledge is not None:
                message.pledge.settle()

    def _opened_alone(self, message: InflightAlone) -> None:
        """Go on with a delivery."""
        delivery, pledge, publisher = message.delivery, message.pledge, message.publisher
        self._keep(delivery, message.place, self._begun().lent)
        if pledge is not None and publisher is not None:
            delivery.pledge = pledge
            publisher.await_disk(pledge)
        self._store.lone.opened(message)

    def done(self, delivery: Delivery) -> None:
        """Delete the delivery; if it is not written yet, it never is."""
        place = delivery.place
        if not place:
            return
        delivery.place = 0
        row = self.in_runs.pop(place, None)
        if row is not None:
            row.done(place, 1)
            return
        delivery.settle()
        changes, writer = self._begun(), self._store.gathering.writer
        if changes.lent.pop(place, None) or changes.owed.pop(place, None):
            changes.packet_ids.pop(place, None)
            changes.released.discard(place)
            writer.elided_rows += 1
        else:
            changes.gone.append(place)
            changes.gone_messages += 1
            self._store.gathering.put_off()
        writer.elided_rows += self._store.messages.release(delivery.message)

    def done_all(self, deliveries: Sequence[Delivery]) -> None:
        """Delete them; those that wait to be written one by one, the others together."""
        places: list[int] = []
        elided = 0
        changes = self._begun()
        release = self._store.messages.release
        for delivery in deliveries:
            place = delivery.place
            if place in changes.lent or place in changes.owed or place in self.in_runs:
                self.done(delivery)
            elif place:
                delivery.place = 0
                delivery.settle()
                places.append(place)
                elided += release(delivery.message)
        if places:
            changes.gone += places
            changes.gone_messages += len(places)
            self._store.gathering.writer.elided_rows += elided
            self._store.gathering.put_off()

    def identify(self, delivery: Delivery, packet_id: int) -> None:
        """Write the packet identifier, at some time."""
        place = delivery.place
        if place:
            changes = self._begun()
            row = self.in_runs.pop(place, None)
            if row is not None:
                self._keep(delivery, place, changes.owed)
                row.whole = False
                row.done(place, 1)
            elif changes.lent.pop(place, None):
                changes.owed[place] = delivery  # both in one batch
            changes.packet_ids[place] = packet_id
            self._store.gathering.put_off()

    def sent(self, delivery: Delivery, packet_id: int) -> int:
        """Write the packet identifier now."""
        self.identify(delivery, packet_id)
        return self.again(delivery)

    def released(self, delivery: Delivery) -> int:
        """Write that PUBREC has come."""
        if delivery.place:
            self._begun().released.add(delivery.place)
            self._store.gathering.put_off()
        return self.again(delivery)

    def again(self, delivery: Delivery) -> int:
        """Return the batch of what was gathered last, due now."""
        return self._store.gathering.mark() if delivery.place else 0

    def serve(self, queue: PagedQueue) -> None:
        """Tell this queue what is on disk."""
        self.queue = queue

    def load(self, after: int, up_to: int, take: Take) -> None:
        """Read what the queue has on disk alone."""
        self._store.pager.load(self, after, up_to, take)

    def forget(self, place: int, message: int, size: int, *, alone: bool, count: int = 1) -> None:
        """Delete a row of so many deliveries that is on disk alone, and its message."""
        changes = self._begun()
        changes.gone.append(place)
        changes.gone_messages += count
        self._store.messages.forget(message, size, alone=alone)

    def close(self, owed: Sequence[Waiting]) -> None:
        """Delete everything of the session; what is on disk alone goes bit by bit."""
        for each in owed:
            if isinstance(each, Delivery):
                self.done(each)
            else:
                each.row.done(each.place, each.count)
        changes = self._changes or Changes()
        written = changes.gone_messages + sum(row.written for row in changes.begun_runs.values())
        self._changes = None
        self.open = False
        self._store.end(self)
        if written < self.deliveries:
            left = self._begun()
            left.gone, left.gone_messages = changes.gone, changes.gone_messages
            left.begun_runs, left.gone_runs = changes.begun_runs, changes.gone_runs
            self._store.pager.end(self)
        else:
            self._store.end_owed(self)

    def _write(self, delivery: Delivery, owed: dict[int, Delivery]) -> None:
        self._last_place += 1
        self._keep(delivery, self._last_place, owed)

    def _keep(self, delivery: Delivery, place: int, owed: dict[int, Delivery]) -> None:
        delivery.place = place
        delivery.kept = kept_size(delivery.message)
        owed[place] = delivery
        delivery.message = self._store.messages.hold(delivery.message)
