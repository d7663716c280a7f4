"""What waits in a queue, message by message."""

from collections.abc import Iterator

from gateway.mqtt.message import Message
from gateway.session.delivery import Delivery
from gateway.session.delivery_queue import DeliveryQueue
from gateway.session.waiting_run import Waiting, WaitingRun


def messages(queue: DeliveryQueue) -> Iterator[Message]:
    """Iterate over the messages in memory, those of runs too, which stay runs."""
    for waiting in queue:
        if isinstance(waiting, WaitingRun):
            yield from waiting.run.part(0, waiting.count).messages
        else:
            yield waiting.message


def single(waiting: Waiting) -> Delivery:
    """Return a delivery that is of no run."""
    assert isinstance(waiting, Delivery)
    return waiting
