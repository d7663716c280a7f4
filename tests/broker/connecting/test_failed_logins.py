from gateway.broker.connecting import failed_logins
from gateway.broker.connecting.failed_logins import FORGOTTEN_AFTER, MAXIMUM_DELAY, FailedLogins

ANNA, BOB = ("192.0.2.7", "anna"), ("192.0.2.7", "bob")


def test_each_failure_costs_more_up_to_a_bound() -> None:
    failed = FailedLogins(1.0)
    assert failed.wait(ANNA, 0.0) == 0.0
    assert [failed.add(ANNA, 0.0) for _ in range(8)] == [1, 2, 4, 8, *[MAXIMUM_DELAY] * 4]
    assert failed.wait(ANNA, 10.0) == MAXIMUM_DELAY - 10.0
    assert failed.wait(ANNA, 100.0) == 0.0
    assert failed.wait(BOB, 0.0) == 0.0
    assert failed.add(BOB, 0.0) == 1.0


def test_failures_are_forgotten() -> None:
    failed = FailedLogins(1.0)
    failed.add(ANNA, 0.0)
    failed.forget(ANNA)
    failed.forget(ANNA)
    assert failed.wait(ANNA, 0.0) == 0.0
    assert failed.add(ANNA, 0.0) == 1.0
    assert failed.add(ANNA, 1.0 + FORGOTTEN_AFTER) == 2.0
    assert failed.add(ANNA, 4.0 + 2 * FORGOTTEN_AFTER) == 1.0


def test_so_many_are_known() -> None:
    failed = FailedLogins(1.0)
    for number in range(failed_logins.MAXIMUM_KNOWN + 10):
        failed.add(("192.0.2.7", f"user {number}"), 0.0)
    assert len(failed) == failed_logins.MAXIMUM_KNOWN
    assert failed.wait(("192.0.2.7", "user 9"), 0.0) == 0.0
    assert failed.wait(("192.0.2.7", "user 10"), 0.0) == 1.0


def test_without_a_delay_nobody_waits() -> None:
    failed = FailedLogins(0.0)
    assert [failed.add(ANNA, 0.0) for _ in range(3)] == [0.0] * 3
    assert failed.wait(ANNA, 0.0) == 0.0
