"""What a gateway tells does nothing to a terminal and ends no screen, whatever it is."""

from collections.abc import Callable

import pytest

from tests.support.silent_client import Bench
from tests.tui.test_session import every_view, full_bench
from tui.line import width

TEXT = "\x1b[2J\x1b]52;c;eHg=\x07\u202e\r\n\t\0[red]温度\ud800\x9b31m" + "long" * 200
SIZES = ((20, 4), (40, 12), (80, 24), (160, 50))
VALUES: tuple[object, ...] = (
    None,
    -1,
    0,
    9e14,
    -9e14,
    1e300,
    -1e300,
    10**400,
    True,
    "",
    "x",
    TEXT,
    [],
    {},
    [[]],
    [None],
    ["x"],
    [1],
)


def changed(value: object, change: Callable[[object], object]) -> object:
    """Return a document in which each leaf is another."""
    if isinstance(value, dict):
        return {key: changed(each, change) for key, each in value.items()}
    if isinstance(value, list):
        return [changed(each, change) for each in value]
    return change(value)


def shown(bench: Bench, keys: tuple[str, ...]) -> None:
    """Draw a view at every size; what it has fits, and is printable."""
    bench.press(*keys)
    for cells, height in SIZES:
        bench.pass_time(3)
        for each in bench.session.draw(cells, height):
            assert all(text.isprintable() for text, _ in each)
            assert width(each) == cells


def bench_of(change: Callable[[object], object]) -> Bench:
    """Return a session of a gateway whose answers are others."""
    bench = full_bench()
    answers = bench.client.answers
    for what, document in list(answers.items()):
        found = changed(document, change)
        assert isinstance(found, dict)
        answers[what] = found
    bench.hear("a/b", b'{"value":1}')
    bench.hear("sensors/" + TEXT[:40], TEXT.encode(errors="surrogatepass"))
    bench.tell(tidegate__log__recent=TEXT.encode("utf-8", "replace").decode())
    return bench


@pytest.mark.uncovered
@pytest.mark.parametrize("keys", every_view(), ids="-".join)
def test_hostile_texts_on_every_view(keys: tuple[str, ...]) -> None:
    shown(bench_of(lambda value: TEXT if isinstance(value, str) else value), keys)


@pytest.mark.uncovered
@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:20])
def test_values_of_another_kind_on_every_view(value: object) -> None:
    """As a gateway of another version may send them, or none that we know."""
    for keys in every_view():
        shown(bench_of(lambda _: value), keys)


def test_a_gateway_that_knows_no_query() -> None:
    for keys in every_view():
        bench = full_bench()
        for what in bench.client.answers:
            bench.client.answers[what] = {"error": f"there is no query {what!r}"}
        shown(bench, keys)
        bench.pass_time(60)
    assert "there is no query" in bench.screen() or keys == ("?",)


def test_answers_that_never_come_are_told() -> None:
    for digit, place in (("3", "clients"), ("4", "queues"), ("5", "bridges"), ("6", "events")):
        bench = Bench()
        bench.tell(retained=False, uptime="9 seconds")
        bench.press(digit)
        for second in range(12):
            bench.round(10 + second)
        text = bench.screen()
        assert place in text
        assert "no answer within 5 s" in text
