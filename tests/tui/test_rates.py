from tui.state import Rates


def test_no_rate_before_two_rounds_with_the_same_counter() -> None:
    rates = Rates()
    rates.add_round(10, 100.0, {"in": 5_000})
    assert rates.get("in") is None
    rates.add_round(11, 101.0, {"in": 5_010, "late": 9_999})
    assert rates.get("in") == 10
    assert rates.get("late") is None
    rates.add_round(12, 102.0, {"in": 5_020, "late": 10_003})
    assert rates.get("late") == 4


def test_a_rate_is_over_ten_seconds() -> None:
    rates = Rates()
    for second in range(30):
        rates.add_round(second, float(second), {"in": 100 if second < 20 else 100 * (second - 18)})
    assert rates.get("in") == 100


def test_a_slow_network_does_not_change_a_rate() -> None:
    rates = Rates()
    for uptime, at in ((10, 100.0), (11, 108.0), (12, 109.0), (20, 110.0)):
        rates.add_round(uptime, at, {"in": uptime * 7})
    assert rates.get("in") == 7


def test_a_start_of_the_gateway_begins_anew() -> None:
    rates = Rates()
    rates.add_round(500, 1.0, {"in": 9_000})
    rates.add_round(1, 2.0, {"in": 5})
    assert rates.get("in") is None
    rates.add_round(2, 3.0, {"in": 4})
    assert rates.get("in") == 0.0
    rates.forget()
    assert rates.get("in") is None


def test_figures_are_stale_after_two_and_a_half_rounds() -> None:
    rates = Rates()
    assert rates.stale(100.0, since=90.0) is None
    assert rates.stale(106.0, since=90.0) == 16.0
    for second in range(3):
        rates.add_round(10 + 2 * second, 100.0 + 2 * second, {})
    assert rates.interval() == 2.0
    assert rates.stale(108.9, since=90.0) is None
    assert rates.stale(109.5, since=90.0) == 5.5
