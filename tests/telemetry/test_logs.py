import asyncio
import json
import logging
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.access.topics import LOG
from gateway.telemetry.line_output import LineOutput
from gateway.telemetry.logs import (
    RECENT_LENGTH,
    RECENT_LINES,
    ClockFormatter,
    JournalFormatter,
    SysHandler,
    set_up,
)

Published = list[tuple[str, bytes]]


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    """Give a logger of its own, whose handlers are taken away again."""
    logger = logging.getLogger("gateway.test")
    logger.setLevel(logging.DEBUG)
    yield logger
    for handler in list(logger.handlers):
        logger.removeHandler(handler)


def lines(published: Published) -> list[dict[str, object]]:
    return [json.loads(payload) for _, payload in published]


async def turns_pass() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_line_is_published_as_json(logger: logging.Logger) -> None:
    published: Published = []
    logger.addHandler(SysHandler(lambda topic, payload: published.append((topic, payload))))
    logger.warning("client %r: %s °C", "c", 21.5)
    assert not published  # not in the midst of whatever logged it
    await turns_pass()
    assert [topic for topic, _ in published] == [LOG]
    (line,) = lines(published)
    assert set(line) == {"time", "level", "logger", "message"}
    assert (line["level"], line["logger"]) == ("WARNING", "gateway.test")
    assert line["message"] == "client 'c': 21.5 °C"
    assert isinstance(line["time"], int)
    assert line["time"] > 1_700_000_000_000


async def test_the_last_lines_are_kept_for_who_comes_later(logger: logging.Logger) -> None:
    handler = SysHandler(lambda _topic, _payload: None, lambda _: False)
    logger.addHandler(handler)
    assert handler.recent() == "[]"
    logger.info("%s", "\n".join(str(number) for number in range(RECENT_LINES)))
    logger.warning("x" * 10_000)
    logger.info("a lone \udc80")
    lines = json.loads(handler.recent())
    assert len(lines) == RECENT_LINES
    assert [line["message"] for line in lines[:2]] == ["2", "3"]
    assert lines[-2]["message"] == "x" * RECENT_LENGTH
    assert lines[-2]["level"] == "WARNING"


async def test_what_reaches_nobody_is_not_published(logger: logging.Logger) -> None:
    published: Published = []
    asked: list[str] = []

    def wanted(topic: str) -> bool:
        asked.append(topic)
        return len(asked) > 1

    logger.addHandler(SysHandler(lambda topic, payload: published.append((topic, payload)), wanted))
    logger.warning("first")
    logger.warning("second")
    await turns_pass()
    assert asked == [LOG, LOG]
    assert [line["message"] for line in lines(published)] == ["second"]


def test_a_line_begins_with_the_time_of_day() -> None:
    formatter = ClockFormatter()
    record = logging.makeLogRecord({"levelname": "INFO", "msg": "x"})
    for seconds in (1_763_740_000.2, 1_763_740_000.9, 1_763_740_001.0):
        record.created = seconds
        clock = time.strftime("%H:%M:%S", time.localtime(seconds))
        assert formatter.format(record) == f"{clock} INFO     x"


async def test_the_lines_of_one_record_are_told_apart(logger: logging.Logger) -> None:
    published: Published = []
    logger.addHandler(SysHandler(lambda topic, payload: published.append((topic, payload))))
    logger.info("one\ntwo")
    await turns_pass()
    assert [line["message"] for line in lines(published)] == ["one", "two"]
    record = logging.LogRecord("gateway.test", logging.INFO, "", 0, "one\ntwo", None, None)
    first, second = ClockFormatter().format(record).split("\n")
    assert first.endswith(" INFO     one")
    assert second == first.replace("one", "two")


async def test_debug_lines_are_not_for_screens(logger: logging.Logger) -> None:
    published: Published = []
    logger.addHandler(SysHandler(lambda topic, payload: published.append((topic, payload))))
    logger.debug("x")
    await turns_pass()
    assert not published


async def test_a_line_that_publishing_writes_is_not_published(logger: logging.Logger) -> None:
    published: Published = []

    def publish(topic: str, payload: bytes) -> None:
        published.append((topic, payload))
        logger.warning("while publishing")

    logger.addHandler(SysHandler(publish))
    logger.warning("first")
    await turns_pass()
    logger.warning("second")
    await turns_pass()
    assert [line["message"] for line in lines(published)] == ["first", "second"]


async def test_lines_of_other_threads_are_published_on_the_loop(logger: logging.Logger) -> None:
    threads: list[int] = []
    logger.addHandler(SysHandler(lambda _topic, _payload: threads.append(threading.get_ident())))
    await asyncio.to_thread(logger.warning, "from elsewhere")
    await turns_pass()
    assert threads == [threading.get_ident()]


async def test_a_line_with_a_name_that_is_not_utf_8(logger: logging.Logger) -> None:
    published: Published = []
    logger.addHandler(SysHandler(lambda topic, payload: published.append((topic, payload))))
    logger.warning("file %s", "a\udcff")
    await turns_pass()
    assert lines(published)[0]["message"] == "file a\udcff"


async def test_a_line_whose_arguments_do_not_fit_harms_nobody(
    logger: logging.Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    published: Published = []
    logger.propagate = False
    logger.addHandler(SysHandler(lambda topic, payload: published.append((topic, payload))))
    logger.warning("%d", "one")
    logger.warning("two")
    logger.propagate = True
    await turns_pass()
    assert [line["message"] for line in lines(published)] == ["two"]


def test_a_line_after_the_loop_has_ended_is_dropped(logger: logging.Logger) -> None:
    published: Published = []

    async def begin() -> None:
        logger.addHandler(SysHandler(lambda topic, payload: published.append((topic, payload))))

    asyncio.run(begin())
    logger.warning("too late")
    assert not published


@pytest.mark.parametrize(
    ("level", "begins"),
    [
        (logging.CRITICAL, "<2>"),
        (logging.ERROR, "<3>"),
        (logging.WARNING, "<4>"),
        (logging.INFO, "<6>"),
        (logging.DEBUG, "<7>"),
        (25, "<6>"),
    ],
)
def test_the_journal_is_told_the_priority_of_each_line(level: int, begins: str) -> None:
    record = logging.LogRecord("a", level, "file", 1, "first\nsecond", (), None)
    text = JournalFormatter("%(message)s").format(record)
    assert text == f"{begins}first\n{begins}second"


@pytest.fixture
def _root_logger() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    factory, source = logging.getLogRecordFactory(), logging._srcfile
    yield
    logging.setLogRecordFactory(factory)
    logging._srcfile = source
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.mark.usefixtures("_root_logger")
@pytest.mark.parametrize("journal", [True, False])
def test_lines_go_to_standard_error(
    journal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JOURNAL_STREAM", raising=False)
    if journal:
        monkeypatch.setenv("JOURNAL_STREAM", "8:1234")
    set_up()
    logging.getLogger("gateway.x").info("hello")
    logging.getLogger("gateway.x").debug("not this")
    output, errors = capsys.readouterr()
    assert not output
    assert errors.endswith("<6>hello\n" if journal else " INFO     hello\n")
    assert errors.count("\n") == 1
    assert sys.stderr is not None


@pytest.mark.usefixtures("_root_logger")
def test_lines_go_nowhere_without_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    set_up()
    logging.getLogger("gateway.x").info("hello")
    (handler,) = logging.getLogger().handlers
    assert not isinstance(handler, LineOutput)


@pytest.mark.usefixtures("_root_logger")
def test_what_else_is_said_on_a_pipe_goes_along(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as pipe:
        monkeypatch.setattr(sys, "stderr", pipe)
        set_up()
        logging.getLogger("gateway.x").info("hello")
        assert sys.stderr is not pipe
        print("and this", file=sys.stderr)
        assert os.read(reader, 1_000).decode().split(" INFO     ")[1] == "hello\nand this\n"
    os.close(reader)


@pytest.mark.usefixtures("_root_logger")
@pytest.mark.parametrize(
    ("text", "args", "words"),
    [
        ("plain 100 %", (), "plain 100 %"),
        ("%s of %d", ("one", 2), "one of 2"),
        ("%(name)s", ({"name": "n"},), "n"),
        ("%s", ({},), "{}"),
        ("%s", ([1],), "[1]"),
    ],
)
def test_a_line_has_its_arguments(
    text: str, args: tuple[object, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    set_up()
    logging.getLogger("gateway.x").info(text, *args)
    assert capsys.readouterr().err.endswith(f" INFO     {words}\n")


@pytest.mark.usefixtures("_root_logger")
def test_an_exception_stands_below_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    set_up()
    try:
        int("broken")
    except ValueError:
        logging.getLogger("gateway.x").exception("it is")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].endswith(" ERROR    it is")
    assert lines[-1].startswith("ValueError: invalid literal")


@pytest.mark.usefixtures("_root_logger")
def test_a_line_leaves_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "log").open("w", encoding="utf-8") as file:
        monkeypatch.setattr(sys, "stderr", file)
        set_up()
        logging.getLogger("gateway.x").info("hello")
        assert (tmp_path / "log").read_text(encoding="utf-8").endswith("hello\n")


@pytest.mark.usefixtures("_root_logger")
def test_a_line_that_cannot_be_written_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    set_up()
    logging.getLogger("gateway.x").info("%d", "one")
    assert "--- Logging error ---" in capsys.readouterr().err
