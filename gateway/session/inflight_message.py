"""A delivery that was sent to a client and not yet acknowledged."""

from dataclasses import dataclass

from gateway.session.delivery import Delivery


@dataclass(slots=True)
class InflightMessage:
    """A delivery on its way; `released` once its PUBREC came and its PUBREL was sent.

    `noted` is True once the session's journal has its packet identifier. `order` is higher for
    what was sent later.
    """

    delivery: Delivery
    released: bool = False
    noted: bool = False
    order: int = 0
