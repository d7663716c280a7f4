from tui.link import FIRST_DELAY, LONGEST_DELAY, delay_after


def test_the_delay_doubles_up_to_a_bound() -> None:
    assert [delay_after(attempt) for attempt in (0, 1, 2, 3, 4, 5)] == [1, 1, 2, 4, 8, 15]
    assert delay_after(1) == FIRST_DELAY
    assert delay_after(10_000) == LONGEST_DELAY
