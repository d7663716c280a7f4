"""Log lines: to standard error for people and the journal, and to `$SYS` for screens."""

import asyncio
import json
import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TextIO

from gateway.access.topics import LOG
from gateway.settings.log import ALL, PARTS, Level, LogSettings
from gateway.telemetry.buffered_output import buffered
from gateway.telemetry.line_output import LineOutput, WithoutLock

PACKAGES = {
    "app": ("app", "cli", "telemetry", "clock"),
    "bridges": ("bridges",),
    "broker": ("broker", "session", "routing", "access"),
    "server": ("server",),
    "storage": ("storage", "salvage"),
    "uplink": ("uplink",),
}
"""The packages of each part of `[log]`."""

RECENT_LINES = 50
"""Lines that a screen gets when it connects; the oldest is dropped for a new one."""

RECENT_LENGTH = 256
"""Characters of each line that are stored."""


class Line(logging.LogRecord):
    """A record without the line of code and the thread that wrote it.

    Finding these costs as much as all the rest of a line, and a thousand clients that reconnect
    write a thousand lines.
    """

    filename = "a line"  # the base class's word if a line cannot be written
    lineno = 0
    exc_text = None

    def __init__(
        self,
        name: str,
        level: int,
        _pathname: str,
        _lineno: int,
        msg: object,
        args: Any,
        exc_info: Any,
        _func: str | None = None,
        sinfo: str | None = None,
        **_others: object,
    ) -> None:
        self.name = name
        self.levelno = level
        self.levelname = logging.getLevelName(level)
        self.msg = msg
        if args and len(args) == 1 and isinstance(args[0], Mapping) and args[0]:
            args = args[0]  # of %(name)s
        self.args = args
        self.exc_info = exc_info
        self.stack_info = sinfo
        self.created = time.time()


class ClockFormatter(logging.Formatter):
    """Starts each line with the time of day, which is formatted once a second."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-8s %(message)s")
        self._second = -1
        self._words = ""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, followed by those of an exception."""
        if record.exc_info:
            return super().format(record)
        beginning = f"{self.formatTime(record)} {record.levelname:8} "
        return beginning + record.getMessage().replace("\n", "\n" + beginning)

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802 - the base class's name
        """Return hours, minutes and seconds."""
        second = int(record.created)
        if second != self._second:
            self._words = time.strftime(datefmt or "%H:%M:%S", time.localtime(second))
            self._second = second
        return self._words


class JournalFormatter(logging.Formatter):
    """Starts a line with the priority for systemd's journal (sd-daemon(3))."""

    PRIORITIES: ClassVar = {
        logging.CRITICAL: 2,
        logging.ERROR: 3,
        logging.WARNING: 4,
        logging.INFO: 6,
        logging.DEBUG: 7,
    }

    def format(self, record: logging.LogRecord) -> str:
        """Return one line or several, each with its priority."""
        priority = self.PRIORITIES.get(record.levelno, 6)
        return "\n".join(f"<{priority}>{line}" for line in super().format(record).splitlines())


def set_up(level: str = "INFO") -> None:
    """Send log lines of this level and above to standard error, if there is one."""
    logging.setLogRecordFactory(Line)
    logging._srcfile = None  # noqa: SLF001 - as the Logging HOWTO has it
    stream: TextIO | None = sys.stderr  # None if it was closed before the start
    handler = logging.NullHandler() if stream is None else _to(stream)
    if os.environ.get("JOURNAL_STREAM"):
        handler.setFormatter(JournalFormatter("%(message)s"))
    else:
        handler.setFormatter(ClockFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)


def set_levels(settings: LogSettings) -> None:
    """Write lines from the level of their part on, and of every other part from `level` on."""
    set_level(ALL, settings.level)
    for part in PACKAGES:
        set_level(part, getattr(settings, part))


def set_level(part: str, level: Level | None) -> None:
    """Write a part's lines from this level on, or from that of `all` on if it is None."""
    for logger in _loggers(part):
        logger.setLevel(level.upper() if level else logging.NOTSET)


def levels() -> dict[str, str | None]:
    """Return the level of each part, None for one without its own."""
    names = {part: _loggers(part)[0].level for part in PARTS}
    return {
        part: logging.getLevelName(level).lower() if level else None
        for part, level in names.items()
    }


def _loggers(part: str) -> list[logging.Logger]:
    if part == ALL:
        return [logging.getLogger()]
    return [logging.getLogger(f"gateway.{package}") for package in PACKAGES[part]]


def _to(stream: TextIO) -> LineOutput:
    """Return a handler for standard error; if it may block, all other output there uses it too."""
    output = buffered(stream)
    handler = LineOutput(output)
    if output is not stream:
        sys.stderr = handler.stream  # for the text of a crash, among others
    return handler


class SysHandler(WithoutLock):
    """Publishes log lines of the gateway as JSON messages; safe to use from any thread.

    `wanted` returns, on the loop's thread, whether a message of this topic would reach anybody.
    """

    def __init__(
        self,
        publish: Callable[[str, bytes], object],
        wanted: Callable[[str], bool] = lambda _: True,
    ) -> None:
        super().__init__(logging.INFO)
        self._publish = publish
        self._wanted = wanted
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()  # the loop's
        self._publishing = False
        self._recent: deque[tuple[float, str, str, str]] = deque(maxlen=RECENT_LINES)

    def recent(self) -> str:
        """Return the last lines as a JSON array, the oldest first."""
        lines = [_line(*each) for each in list(self._recent)]
        return json.dumps(lines, ensure_ascii=False).encode(errors="backslashreplace").decode()

    def emit(self, record: logging.LogRecord) -> None:
        """Publish the record's line, or each of several, at the loop's next turn."""
        on_loop = threading.get_ident() == self._thread
        if on_loop and self._publishing:
            return  # a line of the publishing itself would never end
        try:
            message = record.getMessage()
        except (TypeError, ValueError):
            self.handleError(record)
            return
        lines = message.split("\n")
        for each in lines[-RECENT_LINES:]:
            shown = each[:RECENT_LENGTH]
            self._recent.append((record.created, record.levelname, record.name, shown))
        if self._loop.is_closed() or (on_loop and not self._wanted(LOG)):
            return
        for each in lines:
            line = _line(record.created, record.levelname, record.name, each)
            # a lone surrogate, as in a file name that is not UTF-8, becomes a JSON escape
            payload = json.dumps(line, ensure_ascii=False).encode(errors="backslashreplace")
            self._loop.call_soon_threadsafe(self._send, payload)

    def _send(self, payload: bytes) -> None:
        self._publishing = True
        try:
            self._publish(LOG, payload)
        finally:
            self._publishing = False


def _line(created: float, level: str, logger: str, message: str) -> dict[str, int | str]:
    """Return a line in the form of `$SYS`."""
    return {"time": int(created * 1000), "level": level, "logger": logger, "message": message}
