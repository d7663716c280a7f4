"""What the kernel says of its clock."""

from gateway.clock import Synchronization
from gateway.clock.kernel import STA_UNSYNC, TIME_ERROR, interpret, synchronization
from tests.support.table import table

UNSYNCHRONIZED = Synchronization(synchronized=False)


@table(
    ("answer", "status", "maximum_error", "expected"),
    [
        (0, 0x2001, 1_234, Synchronization(synchronized=True, error_ms=2)),
        (0, 0x2001, 0, Synchronization(synchronized=True, error_ms=0)),
        (1, 0x2001, 16_000_000, Synchronization(synchronized=True, error_ms=16_000)),
        (TIME_ERROR, 0, 5, UNSYNCHRONIZED),
        (TIME_ERROR, STA_UNSYNC, 16_000_000, UNSYNCHRONIZED),
        (0, STA_UNSYNC, 5, UNSYNCHRONIZED),
        (-1, 0, 0, UNSYNCHRONIZED),  # not allowed to ask
    ],
)
def test_an_answer_of_adjtimex(
    answer: int, status: int, maximum_error: int, expected: Synchronization
) -> None:
    assert interpret(answer, status, maximum_error) == expected


def test_this_kernel_answers() -> None:
    state = synchronization()
    assert (state.error_ms is not None) == state.synchronized
    assert state.error_ms is None or 0 <= state.error_ms < 60_000
