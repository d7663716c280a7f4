import fcntl
import io
import os
import pty
import select
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.telemetry import buffered_output
from gateway.telemetry.buffered_output import WAITING_BYTES, BufferedOutput, buffered

SECONDS = 60.0
STOP, GO_ON = b"\x13", b"\x11"  # Ctrl-S and Ctrl-Q

GAP = "{} are missing\n"

LINES = 4_000
"""More, of a hundred bytes, than a pipe takes (64 KiB) and than may wait."""


class Place:
    """Where standard error goes: `stream` on this side, and what reads it on the other."""

    def __init__(self, reader: int, writer: int) -> None:
        self.reader = reader
        self.stream = os.fdopen(writer, "w")
        os.set_blocking(reader, False)

    def buffered(self) -> BufferedOutput:
        output = buffered(self.stream)
        assert isinstance(output, BufferedOutput)
        return output

    def read(self) -> str:
        """Return what came since the last time."""
        data = b""
        try:
            while more := os.read(self.reader, 65_536):
                data += more
        except BlockingIOError:
            pass
        return data.decode().replace("\r\n", "\n")  # as a terminal is sent it

    def read_until(self, end: str) -> str:
        text = ""
        deadline = time.monotonic() + SECONDS
        while not text.endswith(end):
            assert time.monotonic() < deadline, text[-200:]
            time.sleep(0.005)
            text += self.read()
        return text


@pytest.fixture(params=["pipe", "terminal"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """Give a pipe or a terminal."""
    place = Place(*(os.pipe() if request.param == "pipe" else pty.openpty()))
    yield place
    os.close(place.reader)
    place.stream.close()


@pytest.fixture
def pipe() -> Iterator[Place]:
    """Give a pipe, which the test may close."""
    place = Place(*os.pipe())
    yield place
    place.stream.close()


@pytest.fixture(params=["opened again", "of another user"])
def _owner(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a descriptor be opened again, or not."""
    if request.param == "of another user":
        monkeypatch.setattr(os, "open", _refused)


def _refused(path: str, *_: object) -> int:
    raise PermissionError(13, "Permission denied", path)


def line(number: int) -> str:
    return f"{number:099}\n"


def read_all(place: Place, lines: int, text: str = "") -> None:
    """Read until each line has come or is said to be missing at its place."""
    number = 0
    text += place.read_until("\n")
    while number < lines:
        for each in text.splitlines():
            if each.endswith(" are missing"):
                number += int(each.split()[0])
            else:
                assert each == line(number)[:-1]
                number += 1
        if number < lines:
            text = place.read_until("\n")
    assert number == lines


def test_what_is_taken_leaves_at_once(place: Place) -> None:
    threads = threading.active_count()
    output = place.buffered()
    assert output.write("one\n") == 4
    output.write("two °\n")
    output.write("three \udcff\n")
    assert place.read() == "one\ntwo °\nthree \\udcff\n"
    assert threading.active_count() == threads


@pytest.mark.usefixtures("_owner")
def test_what_is_not_taken_waits_in_order(place: Place) -> None:
    output = place.buffered()
    text = "".join(line(number) for number in range(800))
    output.write(text)  # more than it takes; alone it may be as long as it likes
    assert place.read_until(line(799)) == text
    output.write("end\n")
    assert place.read_until("end\n") == "end\n"
    assert output.dropped == 0


@pytest.mark.usefixtures("_owner")
def test_what_is_too_much_is_dropped_counted_and_told(place: Place) -> None:
    output = place.buffered()
    output.gap = GAP.format
    for number in range(LINES):
        output.write(line(number))
    read_all(place, LINES)
    assert 0 < output.dropped <= LINES - WAITING_BYTES // 100
    dropped = output.dropped
    output.write("and on\n")
    assert place.read_until("and on\n") == "and on\n"
    assert output.dropped == dropped


def test_a_stopped_terminal_stops_nobody() -> None:
    keyboard, screen = pty.openpty()
    place = Place(keyboard, screen)
    output = place.buffered()
    os.write(keyboard, STOP)
    while select.select([], [screen], [], 0)[1]:  # until it has come through
        time.sleep(0.005)
    for number in range(100):
        output.write(line(number))
    assert place.read() == ""
    os.write(keyboard, GO_ON)
    assert place.read_until(line(99)) == "".join(line(number) for number in range(100))
    os.close(keyboard)
    place.stream.close()


@pytest.mark.usefixtures("_owner")
def test_who_shares_the_descriptor_sees_no_change(place: Place) -> None:
    before = fcntl.fcntl(place.stream, fcntl.F_GETFL)
    place.buffered().write("one\n")
    assert place.read_until("one\n")
    assert fcntl.fcntl(place.stream, fcntl.F_GETFL) == before


@pytest.mark.usefixtures("_owner")
def test_what_nobody_reads_any_more_is_lost(pipe: Place) -> None:
    output = pipe.buffered()
    output.write("one\n")
    assert pipe.read_until("one\n")
    os.close(pipe.reader)
    output.write("two\nthree\n")
    output.finish()
    assert output.dropped == 2
    output.write("four\n")
    output.finish()
    assert output.dropped == 3


def test_what_waits_is_lost_when_its_reader_goes(pipe: Place) -> None:
    output = pipe.buffered()
    for number in range(LINES):
        output.write(line(number))
    os.close(pipe.reader)
    output.finish()
    assert output.dropped >= LINES - 65_536 // 100
    output.write("one\n")
    output.finish()
    assert output.dropped > LINES - 65_536 // 100  # the line that tells of them is among them


@pytest.mark.usefixtures("_owner")
def test_the_end_waits_only_so_long(pipe: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffered_output, "LAST_WAIT", 0.05)
    output = pipe.buffered()
    output.write("x" * 200_000)
    began = time.monotonic()
    output.finish()
    assert 0.05 <= time.monotonic() - began < SECONDS / 2
    os.close(pipe.reader)


def test_without_another_thread_the_next_line_tries_again(
    pipe: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = pipe.buffered()
    output.gap = GAP.format
    with monkeypatch.context() as without:
        without.setattr(threading.Thread, "start", _no_thread)
        for number in range(LINES):
            output.write(line(number))
    taken = pipe.read()
    assert taken.endswith("\n")
    output.write(line(LINES))  # it is dropped, too
    read_all(pipe, LINES + 1, taken)
    os.close(pipe.reader)


def _no_thread(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_what_says_that_it_takes_more_and_does_not_is_asked_again(pipe: Place) -> None:
    asked: list[bytes] = []

    def send(data: bytes) -> int:
        asked.append(data)
        if len(asked) < 4:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return os.write(pipe.stream.fileno(), data)

    output = BufferedOutput(pipe.stream.fileno(), send, direct=True)
    output.write("one\n")
    output.finish()
    assert asked == [b"one\n"] * 4
    assert pipe.read() == "one\n"
    os.close(pipe.reader)


def test_lines_of_many_threads_stay_whole(place: Place) -> None:
    output = place.buffered()
    words = ("a", "b", "c")

    def write(word: str) -> None:
        for number in range(200):
            output.write(f"{word} {number:090}\n")

    threads = [threading.Thread(target=write, args=(word,)) for word in words]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    output.write("end\n")
    lines = place.read_until("end\n").splitlines()[:-1]
    for word in words:
        ours = [each for each in lines if each[0] == word]
        assert ours == [f"{word} {number:090}" for number in range(200)]


def test_what_never_blocks_is_left_as_it_is(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as file:
        assert buffered(file) is file
    assert buffered(file) is file  # closed
    with Path(os.devnull).open("w") as nowhere:
        assert buffered(nowhere) is nowhere
    memory = io.StringIO()
    assert buffered(memory) is memory
