from tui.rates import OWN, ROUND_SPREAD, Rates

NOW = 1_763_740_000.0


def a_round(rates: Rates, uptime: int, at: float, retained: bool = False, **counts: int) -> None:
    """Refresh as a gateway does: the uptime with what changed on either side of it."""
    for position, (name, count) in enumerate(counts.items()):
        if position == 1:
            rates.begin_round(uptime, at, retained=retained)
        rates.count(name, count)
    if len(counts) < 2:
        rates.begin_round(uptime, at, retained=retained)


def test_nothing_is_known_after_one_round() -> None:
    rates = Rates()
    a_round(rates, 10, NOW, received=100)
    assert rates.settle(NOW + 1)
    assert rates.get("received") is None


def test_the_difference_of_two_rounds_by_their_distance() -> None:
    rates = Rates()
    a_round(rates, 10, NOW, received=100, sent=10)
    rates.settle(NOW + 1)
    a_round(rates, 20, NOW + 10, received=150, sent=410)
    rates.settle(NOW + 11)
    assert rates.get("received") == 5
    assert rates.get("sent") == 40


def test_a_counter_that_is_not_refreshed_stands_still() -> None:
    rates = Rates()
    for uptime, count in ((10, 100), (20, 150)):
        a_round(rates, uptime, NOW + uptime, received=count)
        rates.settle(NOW + uptime + 1)
    a_round(rates, 30, NOW + 30)
    rates.settle(NOW + 31)
    assert rates.get("received") == 0


def test_a_counter_that_first_counts_began_at_0() -> None:
    rates = Rates()
    a_round(rates, 10, NOW)
    rates.settle(NOW + 1)
    a_round(rates, 20, NOW + 10, received=30)
    rates.settle(NOW + 11)
    assert rates.get("received") == 3
    assert rates.get("never heard of") == 0


def test_a_round_is_complete_only_after_its_spread() -> None:
    rates = Rates()
    a_round(rates, 10, NOW, received=100)
    assert not rates.settle(NOW + ROUND_SPREAD / 2)
    assert rates.settle(NOW + ROUND_SPREAD)
    assert not rates.settle(NOW + 9)


def test_retained_counts_are_as_old_as_the_gateway_says() -> None:
    """The retained round was made 8 s before the connection; the next one comes 2 s after it."""
    rates = Rates()
    a_round(rates, 100, NOW, retained=True, received=1_000)
    rates.settle(NOW + 1)
    a_round(rates, 110, NOW + 2, received=1_050)
    rates.settle(NOW + 3)
    assert rates.get("received") == 5


def test_two_rounds_within_a_gateway_second_give_nothing() -> None:
    rates = Rates()
    a_round(rates, 100, NOW, retained=True, received=1_000)
    rates.settle(NOW + 1)
    a_round(rates, 100, NOW + 1, received=1_001)
    rates.settle(NOW + 2)
    assert rates.get("received") is None


def test_a_gateway_that_began_anew_is_not_compared() -> None:
    rates = Rates()
    for uptime, count in ((10, 100), (20, 150), (3, 7)):
        a_round(rates, uptime, NOW + uptime, received=count)
        rates.settle(NOW + 50)
    assert rates.get("received") is None


def test_a_rate_is_taken_over_ten_seconds() -> None:
    rates = Rates()
    counts = [0, 0, 0, 0, 0, 100, *[100] * 20]  # one burst
    seen = []
    for second, count in enumerate(counts):
        a_round(rates, second, NOW + second, received=count)
        rates.settle(NOW + second + 0.5)
        seen.append(rates.get("received"))
    assert seen[5] == 20  # five seconds are known
    assert seen[10:15] == [10] * 5
    assert seen[15:] == [0] * 11


def test_what_this_screen_was_sent_is_counted_beside() -> None:
    rates = Rates()
    a_round(rates, 100, NOW, retained=True, sent=1_000)
    rates.settle(NOW + 1, own=70)  # what was retained came after that count
    a_round(rates, 110, NOW + 2, sent=1_100)
    rates.settle(NOW + 3, own=100)
    assert rates.get("sent") == rates.get(OWN) == 10


def test_forget() -> None:
    rates = Rates()
    for uptime in (10, 20):
        a_round(rates, uptime, NOW + uptime, received=uptime)
        rates.settle(NOW + uptime + 1)
    rates.forget()
    assert rates.get("received") is None
    assert not rates.settle(NOW + 99)
