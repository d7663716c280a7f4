"""When nothing has come for too long, told once, and again after ever longer silences."""

from gateway.bridges.supervision.silence import LEARNING, LEAST, Silence


def heard(silence: Silence, *times: float) -> float:
    for time in times:
        silence.heard(time)
    return times[-1]


def test_a_silence_is_told_after_so_many_usual_gaps_and_again_when_it_lasts() -> None:
    silence = Silence(3)
    last = heard(silence, *(10.0 * place for place in range(8)))
    looks = {second: silence.look(last + second) for second in range(1, 130)}
    assert {second: told for second, told in looks.items() if told} == {30: 30, 60: 60, 120: 120}


def test_what_comes_ends_the_silence_and_its_length_is_not_usual() -> None:
    silence = Silence(3)
    last = heard(silence, *(10.0 * place for place in range(8)))
    assert silence.look(last + 1000) == 1000
    last = heard(silence, last + 1000, last + 1010)
    assert silence.usual == 10
    assert silence.look(last + 29) is None
    assert silence.look(last + 30) == 30


def test_short_gaps_have_a_least_silence() -> None:
    silence = Silence(3)
    last = heard(silence, *(0.01 * place for place in range(50)))
    assert silence.look(last + LEAST - 0.1) is None
    assert silence.look(last + LEAST) == LEAST


def test_a_longer_gap_counts_at_once_and_is_forgotten_slowly() -> None:
    silence = Silence(2)
    last = heard(silence, 0, 1, 2, 3, 4, 104, 105)
    assert 90 < silence.usual < 100
    last = heard(silence, *(last + place for place in range(1, 200)))
    assert silence.usual < 2


def test_a_bridge_that_has_brought_little_or_is_not_watched_is_not_missed() -> None:
    silence = Silence(3)
    assert silence.look(1e9) is None
    heard(silence, *map(float, range(LEARNING)))
    assert silence.look(1e9) is None
    unwatched = Silence(0)
    heard(unwatched, *map(float, range(100)))
    assert unwatched.look(1e9) is None
