import json

from tui.queries import AGAIN, MAX_ANSWERS, MAX_OPEN, PATIENCE, Queries, number, query, text


class Asked:
    def __init__(self) -> None:
        self.sent: list[str] = []
        self.queries = Queries(lambda key, what, request: self.sent.append(what))


STATUS = query("status", 2.0)


def test_a_query_is_asked_when_it_is_due() -> None:
    asked = Asked()
    asked.queries.want([STATUS], 100.0)
    asked.queries.want([STATUS], 101.0)
    assert asked.sent == ["status"]
    asked.queries.answered(STATUS.key, b'{"verdict":"well","rows":[{},1],"n":true}', 101.5)
    asked.queries.want([STATUS], 101.9)
    assert len(asked.sent) == 1
    asked.queries.want([STATUS], 102.1)
    assert len(asked.sent) == 2
    answer = asked.queries.get(STATUS)
    assert (answer.text("verdict"), answer.rows(), answer.number("n")) == ("well", [{}], None)
    assert answer.age(103.0) == 1.5


def test_no_answer_is_told_and_asked_again() -> None:
    asked = Asked()
    asked.queries.want([STATUS], 100.0)
    asked.queries.want([STATUS], 100.0 + PATIENCE + 1)
    assert asked.queries.get(STATUS).error == "no answer within 5 s"
    assert len(asked.sent) == 2
    assert asked.queries.open_since(110.0) == 4.0


def test_a_refusal_is_told_and_asked_again_after_a_while() -> None:
    asked = Asked()
    once = query("why", 0.0, topic="t", nothing=None)
    assert json.loads(once.key.partition(" ")[2]) == {"topic": "t"}
    asked.queries.want([once], 100.0)
    asked.queries.acknowledged(once.key, "Not authorized")
    assert asked.queries.refused == "Not authorized"
    asked.queries.want([once], 101.0)
    assert len(asked.sent) == 1
    asked.queries.want([once], 101.0 + AGAIN)
    asked.queries.answered(once.key, b'{"error":"no \x1b history"}', 112.0)
    assert asked.queries.get(once).error != ""
    asked.queries.answered(once.key, b'{"lines":[]}', 113.0)
    assert asked.queries.get(once).error == ""
    assert asked.queries.refused == ""


def test_what_is_no_answer() -> None:
    asked = Asked()
    for payload in (b"", b"[1]", b"{", b"[" * 100_000, b"x" * 300_000):
        asked.queries.want([STATUS], 0.0)
        asked.queries.answered(STATUS.key, payload, 1.0)
        assert asked.queries.get(STATUS).error == "the answer is not one that we know"
    asked.queries.answered("unknown {}", b"{}", 1.0)


def test_bounds() -> None:
    asked = Asked()
    asked.queries.want([query(f"q{n}") for n in range(50)], 100.0)
    assert len(asked.sent) == MAX_OPEN
    for n in range(200):
        each = query(f"r{n}")
        asked.queries.lost()
        asked.queries.want([each], 200.0 + n)
    assert len(asked.queries._answers) <= MAX_ANSWERS + 1


def test_values_of_documents() -> None:
    assert number(True) is None
    assert number(3) == 3.0
    assert text(None) == ""
    assert text("\x1b") == "·"
    assert text(5) == "5"
