"""When nothing has come for too long, told once, and again after ever longer silences."""

from gateway.bridges.supervision.silence import LEARNING, LEAST, Silence


def heard(silence: Silence, *times: float) -> float:
    for time in times:
        silence.received(time)
    return times[-1]


def test_a_silence_is_told_after_so_many_usual_gaps_and_again_when_it_lasts() -> None:
    silence = Silence(3)
    last = heard(silence, *(10.0 * place for place in range(8)))
    checks = {second: silence.check(last + second) for second in range(1, 130)}
    assert {second: texts for second, texts in checks.items() if texts} == {
        30: 30,
        60: 60,
        120: 120,
    }


def test_what_comes_ends_the_silence_and_its_length_is_not_usual() -> None:
    silence = Silence(3)
    last = heard(silence, *(10.0 * place for place in range(8)))
    assert silence.check(last + 1000) == 1000
    last = heard(silence, last + 1000, last + 1010)
    assert silence.usual == 10
    assert silence.check(last + 29) is None
    assert silence.check(last + 30) == 30


def test_short_gaps_have_a_least_silence() -> None:
    silence = Silence(3)
    last = heard(silence, *(0.01 * place for place in range(600)))
    assert silence.check(last + LEAST - 0.1) is None
    assert silence.check(last + LEAST) == LEAST


def test_a_longer_gap_counts_at_once_and_is_forgotten_slowly() -> None:
    silence = Silence(2)
    last = heard(silence, 0, 1, 2, 3, 4, 104, 105)
    assert 90 < silence.usual < 100
    last = heard(silence, *(last + place for place in range(1, 200)))
    assert 80 < silence.usual < 100
    last = heard(silence, *(last + place for place in range(1, 2000)))
    assert silence.usual < 2


def test_what_has_waited_for_the_gateway_is_no_new_rhythm() -> None:
    """A node of ten seconds is back after an outage, and sends 3,000 readings in six seconds."""
    silence = Silence(3)
    last = heard(silence, *(10.0 * place for place in range(8)))
    assert silence.check(last + 600) == 600
    last = heard(silence, *(last + 600 + 0.002 * place for place in range(3000)))
    assert silence.usual > 9
    assert silence.check(last + 12) is None


def test_a_slower_rhythm_is_told_once_and_usual_then() -> None:
    """Three readings each minute, where there was one each second."""
    silence = Silence(10)
    last = heard(silence, *map(float, range(60)))
    reported = []
    for _ in range(5):
        reported.append([silence.check(last + second) for second in range(60)])
        last = heard(silence, *(last + 60 + 0.001 * place for place in range(3)))
    assert [sum(look is not None for look in looks) for looks in reported] == [3, 3, 0, 0, 0]
    assert 59 < silence.usual < 61
    assert silence.check(last + 599) is None
    assert silence.check(last + 601) == 601


def test_a_bridge_that_has_brought_little_or_is_not_watched_is_not_missed() -> None:
    silence = Silence(3)
    assert silence.check(1e9) is None
    heard(silence, *map(float, range(0, 3 * LEARNING, 3)))
    assert silence.check(1e9) is None
    burst = Silence(3)
    heard(burst, *(0.001 * place for place in range(1000)))
    assert burst.check(1e9) is None
    unwatched = Silence(0)
    heard(unwatched, *map(float, range(100)))
    assert unwatched.check(1e9) is None
