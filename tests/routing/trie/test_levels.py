from itertools import count, islice
from random import Random

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from gateway.routing.trie import levels as topic_levels
from gateway.routing.trie.columns import LARGE
from gateway.routing.trie.levels import AT_ONCE, FEW_HOLES, FIRST_TABLE, MANY, STEP, TopicLevels

TEXTS = st.one_of(st.sampled_from([b"", b"a", b"b", b"\xc3\xa9"]), st.binary(max_size=3))


class LevelsAgainstDict(RuleBasedStateMachine):
    """Texts keep their numbers for as long as they are in use, and only then have one."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        super().__init__()
        self.levels = TopicLevels(at_once)
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


class LevelsThatMoveAgainstDict(LevelsAgainstDict):
    """The same while numbers move from one table to the next, of however few."""

    def __init__(self) -> None:
        super().__init__(at_once=0)

    @initialize(count=st.integers(40, 60))
    def fill(self, count: int) -> None:
        for number in range(count):
            self.use(b"x%d" % number)


TestLevelsThatMoveAgainstDict = pytest.mark.uncovered(LevelsThatMoveAgainstDict.TestCase)

TestLevelsAgainstDict = pytest.mark.uncovered(LevelsAgainstDict.TestCase)


@pytest.mark.uncovered
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


def test_of_large_columns_only_what_was_written_to_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_levels, "LARGE", 1_000)
    levels = TopicLevels()
    empty = levels.memory()
    for number in range(2_000):
        levels.use(b"device-%05d" % number)
    assert 2_000 * 12 < levels.memory() - empty < 2_000 * 40


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


def test_texts_of_the_last_slot_are_found_while_numbers_move(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # hashes are others in each process: these let every probe go on at the table's begin
    monkeypatch.setattr(topic_levels, "hash", lambda _: 0xFFFF_FFFF, raising=False)
    levels = TopicLevels(at_once=0)
    texts = [b"%d" % number for number in range(5 * STEP)]
    for known, text in enumerate(texts):
        assert levels.use(text) == known + 1
        some = (0, known // 2, known)
        assert [levels.find(texts[each]) for each in some] == [each + 1 for each in some]
        assert levels.find(b"none") == 0


@pytest.mark.parametrize("form", [b"%04d", b"a-device-with-a-long-name-%04d"])
@pytest.mark.parametrize("short", [0, 16])  # what plain and compiled code compare byte by byte
def test_texts_of_one_length_are_told_apart(
    form: bytes, short: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_levels, "_SHORT", short, raising=False)
    levels = TopicLevels()
    texts = [form % number for number in range(1_000)]
    numbers = [levels.use(text) for text in texts]
    assert [levels.text(number) for number in numbers] == texts
    assert [levels.find(text) for text in texts] == numbers
    assert [levels.find(form % number) for number in range(1_000, 2_000)] == [0] * 1_000


@pytest.mark.parametrize("uses", [MANY - 1, MANY, MANY + 1, 1_000])
def test_uses_are_counted_beyond_what_a_byte_says(uses: int) -> None:
    levels = TopicLevels()
    numbers = {levels.use(b"floor") for _ in range(uses)}
    assert len(numbers) == 1
    other = levels.use(b"site")
    for _ in range(uses - 1):
        levels.release(*numbers)
    assert {levels.find(b"floor")} == numbers
    levels.release(*numbers)
    assert levels.find(b"floor") == 0
    assert levels.find(b"site") == other


def test_the_longest_text_is_kept() -> None:
    levels = TopicLevels()
    text = b"x" * 65_535
    assert levels.text(levels.use(text)) == text
    assert levels.find(text[:-1] + b"y") == 0


@pytest.mark.uncovered
def test_many_texts_are_told_apart_in_columns_of_pages() -> None:
    levels = TopicLevels()
    many = 2 * LARGE
    numbers = [levels.use(b"device-%05d" % number) for number in range(many)]
    assert 12 + 7 < levels.memory() / many < 12 + 7 + 9
    assert [levels.find(b"device-%05d" % number) for number in range(many)] == numbers
    for number in reversed(numbers[100:]):
        levels.release(number)
    assert levels.memory() < many
    assert levels.text(numbers[99]) == b"device-00099"


def test_texts_that_fill_more_than_one_piece_are_kept_apart() -> None:
    levels = TopicLevels()
    texts = [b"%05d" % number + b"x" * 40_000 for number in range(6)]
    numbers = [levels.use(text) for text in texts]
    full = levels.memory()
    assert [levels.text(number) for number in numbers] == texts
    for number in numbers[:4]:
        levels.release(number)
    assert levels.memory() < full / 2
    assert [levels.find(text) for text in texts] == [0] * 4 + numbers[4:]


def test_no_text_costs_a_whole_table() -> None:
    """Growing and shrinking, each change moves STEP numbers, and all texts are found meanwhile."""
    levels, many = TopicLevels(at_once=0), 20 * FIRST_TABLE
    texts = [b"%d" % number for number in range(many)]
    numbers = []
    for text in texts:
        before = levels.moved
        numbers.append(levels.use(text))
        assert levels.moved - before <= STEP or levels.moved == 1
        assert levels.find(texts[0]) == numbers[0]
        assert levels.find(text) == numbers[-1]
    assert [levels.find(text) for text in texts] == numbers
    for number in numbers[: many - 10]:
        levels.release(number)
    assert [levels.find(text) for text in texts] == [0] * (many - 10) + numbers[many - 10 :]
    assert levels.use(texts[0]) > 0


def test_texts_come_and_go_by_the_thousand_and_each_change_looks_at_few() -> None:
    """Tables grow and shrink, and holes are closed, while numbers still move for another reason."""
    levels, random = TopicLevels(at_once=0), Random(11)
    empty = levels.memory()
    held: dict[bytes, int] = {}
    names = count()
    for most in (6_000, 300, 3_000, 40, 5_000, 0):
        while len(held) != most:
            before, others = levels.moved, len(held)
            if random.random() < (0.8 if others < most else 0.2):
                text = b"%d" % next(names) + b"-" * random.choice((0, 3, 40, 2_000))
                held[text] = levels.use(text)
            elif held:
                text = random.choice(list(islice(held, 50)))
                levels.release(held.pop(text))
            assert levels.moved - before <= 4 * max(STEP, 6_000 // FIRST_TABLE)
            assert levels.count == len(held)
        assert len(set(held.values())) == most
        assert [levels.text(number) for number in held.values()] == list(held)
        assert [levels.find(text) for text in held] == list(held.values())
    for number in range(1_000):  # what has still to move does
        levels.release(levels.use(b"%d" % number))
    assert levels.memory() < empty + 2 * FEW_HOLES
