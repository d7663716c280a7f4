"""What a session says of its changes, so that it can be found again after a crash."""

from collections.abc import Callable, Sequence
from typing import Protocol

from gateway.mqtt.output import Pledge
from gateway.session.delivery import Delivery
from gateway.session.inflight_message import InflightAlone
from gateway.session.inflight_run import InflightRun
from gateway.session.kept import KeptSubscription
from gateway.session.message_run import MessageRun
from gateway.session.waiting_run import Waiting, WaitingRun

Take = Callable[[list[Waiting], bool, float], None]
"""Gets what was read, whether that is all that was asked for, and the monotonic second."""


class PagedQueue(Protocol):
    """What a journal needs of the queue that is read through it."""

    def let_go(self, batch: int) -> bool:
        """Forget what is on disk with this batch; return False if more will follow."""
        ...

    def remove_paged(self, place: int, size: int) -> bool:
        """Give up a delivery that is on disk alone; return whether there was one."""
        ...


class Journal(Protocol):
    """Takes down what one persistent session owes, has sent, has taken and has subscribed to.

    Those that return a mark make what they took down due at once; what must not leave before it is
    on disk waits for that mark. The others are due at once where the session's client is
    answered because of them (`owe`, `keep`, `subscribe`, `unsubscribe`, `take`, `let_go`), and
    within a second where losing them only makes something come twice that may.
    """

    def keep(self, expiry_interval: int, username: str | None) -> None:
        """Note that the session has a connection, whose user this is, and how long it stays."""
        ...

    def leave(self, wall: int) -> None:
        """Note that the session has no connection since `wall`, in milliseconds since 1970."""
        ...

    def owe(self, delivery: Delivery) -> None:
        """Keep a delivery until `done`; one of a message that is kept in memory alone is not."""
        ...

    def owe_run(self, run: MessageRun) -> WaitingRun | None:
        """Keep all QoS 1 deliveries of a run of messages, as `owe` does each, and return them.

        None, with nothing kept, where nothing is: each of them is to wait by itself.
        """
        ...

    def lend(self, delivery: Delivery) -> None:
        """Keep a QoS 1 delivery that is sent now, as `owe` does, but not at once.

        If its client acknowledges it before it is written, it never is. Its message's pledge has
        one receiver more until then.
        """
        ...

    def lends(self, qos: int, within: float | None) -> bool:
        """Return whether `lend_run` will do for messages of this QoS and durability class."""
        ...

    def lend_run(self, sent: InflightRun, pledge: Pledge) -> None:
        """Do for each message of a QoS 1 run what `lend` does, and for all of them at once.

        `pledge` has one receiver more until the last of them is acknowledged.
        """
        ...

    def done_run(self, sent: InflightRun) -> None:
        """Forget a run all of whose messages were acknowledged while it was one."""
        ...

    def lend_alone(self, message: InflightAlone) -> int:
        """Do what `lend` does for a message that came alone, without its delivery.

        Returns the mark of its publisher's answer. Its pledge has it among its receivers already.
        """
        ...

    def done_alone(self, message: InflightAlone) -> None:
        """Forget a message that came alone: it was acknowledged."""
        ...

    def done(self, delivery: Delivery) -> None:
        """Forget a delivery: it was acknowledged, has expired, or cannot be sent."""
        ...

    def done_all(self, deliveries: Sequence[Delivery]) -> None:
        """Do that with each of them."""
        ...

    def identify(self, delivery: Delivery, packet_id: int) -> None:
        """Note the packet identifier that the delivery was sent with."""
        ...

    def sent(self, delivery: Delivery, packet_id: int) -> int:
        """Note the packet identifier of a QoS 2 delivery; its PUBLISH waits for the mark."""
        ...

    def released(self, delivery: Delivery) -> int:
        """Note that PUBREC has come for a QoS 2 delivery; its PUBREL waits for the mark."""
        ...

    def again(self, delivery: Delivery) -> int:
        """Return the mark that a QoS 2 delivery waits for when it is sent once more."""
        ...

    def take(self, packet_id: int) -> None:
        """Keep the packet identifier of a QoS 2 message of the client's, until `let_go`."""
        ...

    def let_go(self, packet_id: int) -> None:
        """Forget the packet identifier: its PUBREL has come."""
        ...

    def serve(self, queue: PagedQueue) -> None:
        """Tell this queue what is on disk, so that it need not hold it in memory."""
        ...

    def load(self, after: int, up_to: int, take: Take) -> None:
        """Read deliveries with places above `after`, up to `up_to`, and give `take` the first."""
        ...

    def subscribe(self, subscription: KeptSubscription) -> None:
        """Keep a subscription in place of the one with the same topic filter."""
        ...

    def unsubscribe(self, topic_filter: str) -> None:
        """Forget a subscription."""
        ...

    def close(self, owed: Sequence[Waiting]) -> None:
        """Forget the session, which still owed these and what is on disk alone.

        Nothing is noted afterwards. What is on disk alone is offered to other members of shared
        subscriptions (`broker.store.Store.on_left_over`).
        """
        ...


class NoJournal:
    """The journal of a session that ends with its connection, or with the process."""

    __slots__ = ()

    def keep(self, expiry_interval: int, username: str | None) -> None:
        """Do nothing."""

    def leave(self, wall: int) -> None:
        """Do nothing."""

    def owe(self, delivery: Delivery) -> None:
        """Do nothing."""

    def owe_run(self, run: MessageRun) -> WaitingRun | None:  # noqa: ARG002 - keeps the name
        """Return None."""
        return None

    def lend(self, delivery: Delivery) -> None:
        """Do nothing."""

    def lends(self, qos: int, within: float | None) -> bool:  # noqa: ARG002 - keeps the names
        """Return True."""
        return True

    def lend_run(self, sent: InflightRun, pledge: Pledge) -> None:
        """Do nothing."""

    def done_run(self, sent: InflightRun) -> None:
        """Do nothing."""

    def lend_alone(self, message: InflightAlone) -> int:  # noqa: ARG002 - keeps the name
        """Return 0."""
        return 0

    def done_alone(self, message: InflightAlone) -> None:
        """Do nothing."""

    def done(self, delivery: Delivery) -> None:
        """Do nothing."""

    def done_all(self, deliveries: Sequence[Delivery]) -> None:
        """Do nothing."""

    def identify(self, delivery: Delivery, packet_id: int) -> None:
        """Do nothing."""

    def sent(self, delivery: Delivery, packet_id: int) -> int:  # noqa: ARG002 - keeps the names
        """Return 0."""
        return 0

    def released(self, delivery: Delivery) -> int:  # noqa: ARG002 - keeps the name
        """Return 0."""
        return 0

    def again(self, delivery: Delivery) -> int:  # noqa: ARG002 - keeps the name
        """Return 0."""
        return 0

    def take(self, packet_id: int) -> None:
        """Do nothing."""

    def let_go(self, packet_id: int) -> None:
        """Do nothing."""

    def serve(self, queue: PagedQueue) -> None:
        """Do nothing."""

    def load(self, after: int, up_to: int, take: Take) -> None:
        """Do nothing: nothing is on disk."""

    def subscribe(self, subscription: KeptSubscription) -> None:
        """Do nothing."""

    def unsubscribe(self, topic_filter: str) -> None:
        """Do nothing."""

    def close(self, owed: Sequence[Waiting]) -> None:
        """Do nothing."""


NO_JOURNAL = NoJournal()
"""Shared by all sessions that need none."""
