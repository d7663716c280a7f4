import contextlib
import io
import logging
import os
import threading
import time

import pytest

from gateway.telemetry.buffered_output import buffered
from gateway.telemetry.line_output import HELD_CHARACTERS, HeldLines, LineOutput
from tests.support.disk.noted_writes import NotedWrites


class Full(io.StringIO):
    """A stream on a disk that is full for a while."""

    full = True

    def write(self, text: str) -> int:
        if self.full:
            raise OSError(28, "No space left on device")
        return super().write(text)


def record(text: str) -> logging.LogRecord:
    return logging.makeLogRecord({"msg": text, "levelname": "INFO", "levelno": logging.INFO})


def test_a_line_that_may_not_wait_is_written_at_once() -> None:
    output = NotedWrites()
    lines = HeldLines(output)
    lines.write("one\n")
    lines.write("two\n")
    assert output.writes == ["one\n", "two\n"]


def test_lines_that_wait_are_written_as_one() -> None:
    output = NotedWrites()
    lines = HeldLines(output)
    lines.holds_back = lambda: True
    for text in ("one\n", "two\n", "three\n"):
        assert lines.write(text) == len(text)
    assert not output.writes
    lines.flush()
    lines.flush()
    assert output.writes == ["one\ntwo\nthree\n"]


def test_a_line_that_may_not_wait_comes_behind_those_that_do() -> None:
    output = NotedWrites()
    lines = HeldLines(output)
    lines.holds_back = lambda: threading.current_thread() is threading.main_thread()
    lines.write("one\n")
    other = threading.Thread(target=lines.write, args=("two\n",))
    other.start()
    other.join()
    lines.write("three\n")
    lines.flush()
    assert output.writes == ["one\ntwo\n", "three\n"]


class Interrupted(NotedWrites):
    """A stream whose first writer is stopped for others before anything of it is seen."""

    def __init__(self) -> None:
        super().__init__()
        self.stopped = threading.Event()
        self.goes_on = threading.Event()

    def write(self, text: str) -> int:
        if not self.stopped.is_set():
            self.stopped.set()
            self.goes_on.wait()
        return super().write(text)


def test_a_thread_that_is_stopped_keeps_its_place() -> None:
    output = Interrupted()
    lines = HeldLines(output)
    first = threading.Thread(target=lines.write, args=("one\n",))
    first.start()
    output.stopped.wait()
    second = threading.Thread(target=lines.write, args=("two\n",))
    second.start()
    second.join(0.1)  # it could be faster only if it were let
    output.goes_on.set()
    first.join()
    second.join()
    assert "".join(output.writes) == "one\ntwo\n"


def test_what_waits_is_bounded() -> None:
    output = NotedWrites()
    lines = HeldLines(output)
    lines.holds_back = lambda: True
    half = "x" * (HELD_CHARACTERS // 2)
    for _ in range(2):
        lines.write(half)
    assert not output.writes
    lines.write("\n")
    lines.write(half)
    assert output.writes == [half + half + "\n"]


def test_lines_that_cannot_be_written_are_lost_and_harm_nobody() -> None:
    output = Full()
    lines = HeldLines(output)
    lines.write("lost\n")
    Full.full = False
    lines.write("one\n")
    assert output.getvalue() == "one\n"
    output.close()
    lines.write("too late\n")


def test_lines_of_many_threads_are_all_written() -> None:
    output = NotedWrites()
    lines = HeldLines(output)
    lines.holds_back = lambda: threading.current_thread().name == "holds back"

    def write(word: str) -> None:
        for number in range(2_000):
            lines.write(f"{word} {number}\n")

    threads = [threading.Thread(target=write, args=(word,)) for word in ("a", "b", "c")]
    threads[0].name = "holds back"
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines.flush()
    written = "".join(output.writes).splitlines()
    assert sorted(written) == sorted(f"{word} {n}" for word in "abc" for n in range(2_000))


def test_what_waits_is_written_when_the_handler_is_closed() -> None:
    output = NotedWrites()
    handler = LineOutput(output)
    handler.stream.holds_back = lambda: True
    handler.handle(record("last"))
    handler.flush()  # as a handler's base class does behind each line
    assert not output.writes
    handler.close()
    assert output.writes == ["last\n"]


def test_a_stream_of_bytes_below_need_not_be_flushed() -> None:
    raw = io.BytesIO()
    handler = LineOutput(io.TextIOWrapper(raw, encoding="utf-8"))
    handler.handle(record("one"))
    assert raw.getvalue() == b"one\n"


@pytest.mark.parametrize("even", [True, False])
def test_the_order_of_lines_is_kept_whatever_is_held_back(even: bool) -> None:
    output = NotedWrites()
    lines = HeldLines(output)
    for number in range(6):
        held = (number % 2 == 0) is even
        lines.holds_back = (lambda: True) if held else (lambda: False)
        lines.write(f"{number}\n")
    lines.flush()
    assert "".join(output.writes).split() == list("012345")


def test_the_line_that_tells_of_dropped_ones_is_like_any_other() -> None:
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as stream:
        output = buffered(stream)
        handler = LineOutput(output)
        handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
        wide = record("x" * 1_000)
        os.set_blocking(reader, False)
        while not handler.dropped:
            handler.handle(wide)
        text = ""
        deadline = time.monotonic() + 60
        while "dropped here" not in text:
            assert time.monotonic() < deadline
            with contextlib.suppress(BlockingIOError):
                text += os.read(reader, 65_536).decode()
        handler.close()
    os.close(reader)
    (reported,) = (each for each in text.splitlines() if "dropped here" in each)
    assert reported == "WARNING log lines dropped here, since standard error accepted none: 1"


def test_nothing_is_dropped_where_nothing_blocks() -> None:
    handler = LineOutput(NotedWrites())
    handler.handle(record("one"))
    assert handler.dropped == 0
