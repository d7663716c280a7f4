import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gateway.routing.topic_levels import TopicLevels

TEXTS = st.one_of(st.sampled_from([b"", b"a", b"b", b"\xc3\xa9"]), st.binary(max_size=3))


class LevelsAgainstDict(RuleBasedStateMachine):
    """Texts keep their numbers for as long as they are in use, and only then have one."""

    def __init__(self) -> None:
        super().__init__()
        self.levels = TopicLevels()
        self.numbers: dict[bytes, int] = {}
        self.uses: dict[bytes, int] = {}

    @rule(text=TEXTS)
    def use(self, text: bytes) -> None:
        number = self.levels.use(text)
        assert number > 0
        assert self.numbers.setdefault(text, number) == number
        self.uses[text] = self.uses.get(text, 0) + 1

    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        if not self.uses:
            return
        text = data.draw(st.sampled_from(sorted(self.uses)))
        self.levels.release(self.numbers[text])
        self.uses[text] -= 1
        if not self.uses[text]:
            del self.uses[text], self.numbers[text]

    @rule(text=TEXTS)
    def find(self, text: bytes) -> None:
        assert self.levels.find(text) == self.numbers.get(text, 0)

    @invariant()
    def every_text_is_found(self) -> None:
        assert self.levels.count == len(self.numbers)
        assert len(set(self.numbers.values())) == len(self.numbers)
        for text, number in self.numbers.items():
            assert self.levels.find(text) == number
            assert self.levels.text(number) == text


TestLevelsAgainstDict = LevelsAgainstDict.TestCase


def test_memory_is_given_back_and_numbers_stay() -> None:
    levels = TopicLevels()
    empty = levels.memory()
    texts = [b"device-%05d" % number for number in range(2_000)]
    numbers = [levels.use(text) for text in texts]
    full = levels.memory()
    assert 2_000 * 12 < full - empty < 2_000 * 40
    for number in numbers[10:]:
        levels.release(number)
    assert levels.memory() < full / 2
    assert [levels.find(text) for text in texts] == numbers[:10] + [0] * 1_990
    again = [levels.use(text) for text in texts]
    assert again[:10] == numbers[:10]
    assert [levels.text(number) for number in again] == texts


def test_columns_are_cut_back_to_the_last_number_in_use() -> None:
    levels = TopicLevels()
    numbers = [levels.use(b"%d" % number) for number in range(2_000)]
    full = levels.memory()
    for number in numbers[:1_000] + numbers[1_010:]:
        levels.release(number)
    assert levels.memory() < full
    assert [levels.find(b"%d" % number) for number in range(1_000, 1_010)] == numbers[1_000:1_010]
    fresh = [levels.use(b"x%d" % number) for number in range(1_500)]
    assert len({*fresh, *numbers[1_000:1_010]}) == 1_510


@pytest.mark.parametrize("form", [b"%04d", b"a-device-with-a-long-name-%04d"])
def test_texts_of_one_length_are_told_apart(form: bytes) -> None:
    levels = TopicLevels()
    texts = [form % number for number in range(1_000)]
    numbers = [levels.use(text) for text in texts]
    assert [levels.text(number) for number in numbers] == texts
    assert [levels.find(text) for text in texts] == numbers
    assert [levels.find(form % number) for number in range(1_000, 2_000)] == [0] * 1_000
