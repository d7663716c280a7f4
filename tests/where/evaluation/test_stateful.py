import pytest

from gateway.where.evaluation import stateful as rule_memory
from gateway.where.evaluation.stateful import RULE_TOPICS, RuleMemory


def test_a_row_is_kept_replaced_and_forgotten() -> None:
    memory = RuleMemory()
    assert memory.get("a") is None
    assert memory.remember("a", [1])
    assert memory.remember("a", [2])
    assert (memory.get("a"), len(memory), memory.overflows) == ([2], 1, 0)
    memory.forget("a")
    memory.forget("a")
    assert (memory.get("a"), len(memory)) == (None, 0)


@pytest.mark.uncovered
def test_no_more_than_the_languages_number_of_topics() -> None:
    memory = RuleMemory()
    for number in range(RULE_TOPICS):
        assert memory.remember(str(number), (None,))
    assert not memory.remember("one more", (None,))
    assert memory.remember("0", (1,))
    memory.forget("1")
    assert memory.remember("one more", (None,))
    assert (len(memory), memory.overflows) == (RULE_TOPICS, 1)


def test_texts_that_shrink_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_memory, "RULE_CODE_POINTS", 10)
    memory = RuleMemory()
    assert memory.remember("a", ["1234", 5, "56"])
    assert not memory.remember("b", ["123"])
    assert memory.remember("a", ["1234"])
    assert memory.remember("b", ["1234"])
    assert not memory.remember("b", ["12345"])
    assert memory.get("b") is None
    assert memory.remember("b", ["1234"])
