"""Own messages are sent until they are taken, a bounded number at a time."""

from gateway.counters import Counters
from gateway.mqtt.reason_codes import ReasonCode
from gateway.uplink.reports.control_messages import (
    MAX_CONTROL_MESSAGES,
    ControlMessage,
    ControlMessages,
)
from gateway.uplink.reports.reliable_messages import (
    MAX_UNANSWERED,
    REFUSED_SECONDS,
    ReliableMessages,
)
from tests.support.clocks import ManualClock

REFUSAL = ReasonCode.NOT_AUTHORIZED


def test_a_refused_message_is_kept_and_sent_again_after_a_while() -> None:
    own, clock, counters = ControlMessages(), ManualClock(), Counters()
    kept = ReliableMessages("ledger", own, counters, clock)
    taken: list[str] = []
    kept.send(b"{}", lambda: taken.append("first"))
    message = own.next()
    assert message is not None
    assert (message.suffix, message.payload) == ("ledger", b"{}")
    own.answered(message, REFUSAL)
    kept.resend()
    assert (own.next(), kept.idle, taken) == (None, False, [])
    clock.step(REFUSED_SECONDS)
    kept.resend()
    message = own.next()
    assert message is not None
    own.answered(message, ReasonCode.SUCCESS)
    assert (kept.idle, taken) == (True, ["first"])
    figures = {
        name: counters.count(f"tidegate/ledger/{name}") for name in ("refused", "acknowledged")
    }
    assert figures == {"refused": 1, "acknowledged": 1}


def test_there_is_room_for_so_many() -> None:
    own = ControlMessages()
    kept = ReliableMessages("ledger", own, Counters(), ManualClock())
    woken: list[bool] = []
    kept.on_capacity.append(lambda: woken.append(kept.has_capacity))
    rooms = []
    for _ in range(MAX_UNANSWERED):
        rooms.append(kept.has_capacity)
        kept.send(b"{}", lambda: None)
    assert (all(rooms), kept.has_capacity) == (True, False)
    message = own.next()
    assert message is not None
    own.answered(message, ReasonCode.SUCCESS)
    assert woken == [True]


def test_a_full_queue_puts_a_message_off() -> None:
    own, clock = ControlMessages(), ManualClock()
    for _ in range(MAX_CONTROL_MESSAGES):
        assert own.send(ControlMessage("clock", b"{}"))
    kept = ReliableMessages("ledger", own, Counters(), clock)
    kept.send(b"{}", lambda: None)
    message = own.next()
    assert message is not None
    own.answered(message, ReasonCode.SUCCESS)
    clock.step(REFUSED_SECONDS)
    kept.resend()
    assert len(own) == MAX_CONTROL_MESSAGES
