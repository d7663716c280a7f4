"""Reads the configuration again while the gateway runs, and applies what can be applied."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from gateway.app.checks.check import check_configuration
from gateway.app.checks.warnings import warnings
from gateway.app.parts import Run
from gateway.app.responder import Answer, Request, Responder
from gateway.app.watched_files import ListenerFiles, snapshot
from gateway.config.configuration import Configuration
from gateway.config.errors import ConfigurationError, ManyConfigurationErrors
from gateway.config.load import load
from gateway.config.named_file import open_named
from gateway.errors import StartError
from gateway.telemetry.logs import set_levels

if TYPE_CHECKING:
    from gateway.app.reload.difference import Change

logger = logging.getLogger(__name__)

QUERY = "reload"

SIGNAL = "SIGHUP"

ALARM = "configuration"

MAXIMUM_BYTES = 64 * 1024
"""Bytes at the beginning of a file that are checked for any non-blank content."""

MAXIMUM_SHOWN = 100
"""Keys of each kind that an answer names; it counts them all."""

REFUSAL = 200
"""Characters of a refusal that are reported to systemd."""

NAMED = 20
"""Keys that a line of the log names."""

Switch: TypeAlias = Callable[[], Awaitable[list[str] | None]]
"""Applies what was prepared, and returns lines about other changes."""

Prepare: TypeAlias = Callable[[Configuration, Configuration, AsyncExitStack], Awaitable[Switch]]
"""Does everything that may fail in a change of the configuration, or raises StartError or
ConfigurationError. Its resources are on the stack, which is unwound if another part fails."""


NEEDS_RESTART: Mapping[str, str] = {
    "gateway.id": "it names the gateway at the fleet: topics and numbers depend on it",
}
"""Keys that only a restart changes, and why."""


def read_again(
    file: Path, and_then: Callable[[Configuration], Configuration] = lambda read: read
) -> Configuration:
    """Return the file's configuration, read as by `tidegate check`, `and_then` the command line.

    Raises ConfigurationError or StartError.
    """
    try:
        with open_named(file) as opened:  # opening a pipe would wait for a writer
            empty = not opened.read(MAXIMUM_BYTES).strip()
    except OSError as error:
        raise ConfigurationError(str(file), "", None, error.strerror or str(error)) from error
    if empty:
        problem = "it is empty, and may be incomplete; a comment in it confirms that it is meant"
        raise ConfigurationError(str(file), "", None, problem)
    seen = snapshot([file])
    configuration = and_then(load(file))
    if snapshot([file]) != seen:
        raise ConfigurationError(str(file), "", None, "it was written while it was read")
    check_configuration(configuration)
    return configuration


class Reload:
    """Reads the file again on request, one reload at a time."""

    def __init__(self, run: Run, responder: Responder, files: ListenerFiles) -> None:
        self._run = run
        self._files = files
        self._parts: list[Prepare] = [_levels]
        self._lock = asyncio.Lock()
        self._tasks: set[asyncio.Task[Answer]] = set()
        self._signal_waits = False  # until a reload begins, which reads the file as it is then
        self.refusal = ""
        """Why the last reload was refused, in a line; "" if it was not."""
        self.before: Callable[[], None] = lambda: None
        self.after: Callable[[], None] = lambda: None
        """Called when a reload begins and when it has ended."""
        responder.know(QUERY, self._answer)
        run.stack.push_async_callback(self.close)

    def know(self, *parts: Prepare) -> None:
        """Let parts change with the configuration, in this order."""
        self._parts += parts

    def signal(self) -> None:
        """Reload because of SIGHUP; several signals during a reload cause one more."""
        if not self._signal_waits:
            self._signal_waits = True
            self._begin(SIGNAL)

    async def close(self) -> None:
        """Wait until a running reload is done, so that nothing ends half changed."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def reload(self, by: str) -> Answer:
        """Read the file again, apply what can be applied, and return the result of each change."""
        return await asyncio.shield(self._begin(by))

    def _begin(self, by: str) -> asyncio.Task[Answer]:
        task = asyncio.get_running_loop().create_task(self._in_turn(by))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _answer(self, request: Request) -> Answer:
        return await request.wait_for(self.reload(f"client {request.client_id!r}"))

    async def _in_turn(self, by: str) -> Answer:
        async with self._lock:
            if by is SIGNAL:
                self._signal_waits = False
            self.before()
            try:
                report = await self._reload()
                lines, trouble = await self._files.read_again()
                report.files += lines
                if trouble and not report.refused:
                    report.refused.append({"key": "", "error": f"not used: {trouble}"})
            finally:
                self.after()
        self._log(report, by)
        return report.answer()

    async def _reload(self) -> "Report":
        old = self._run.configuration
        try:
            new, report = await asyncio.to_thread(self._read, old)
            report.files = await self._apply(old, new)
        except (ConfigurationError, StartError) as error:
            self._run.alarm(ALARM, str(error))
            self.refusal = str(error).partition("\n")[0][:REFUSAL]
            return Report(old.file, [], [], _refusals(error))
        self._run.alarm(ALARM, "")
        self.refusal = ""
        return report

    def _read(self, old: Configuration) -> tuple[Configuration, "Report"]:
        """Return the configuration to apply, and which changes need a restart.

        Runs in a thread: with a hundred rules it takes longer than others can wait.
        """
        from gateway.app.reload.difference import differences

        new = (self._run.read_again or _no_file)()
        report = Report(old.file)
        for change in differences(old, new):
            reason = NEEDS_RESTART.get(change.key)
            if reason is None:
                report.changed.append(change)
            else:
                report.restart.append((change, reason))
        gateway = replace(new.gateway, id=old.gateway.id)
        new = replace(new, gateway_id=old.gateway_id, gateway=gateway)
        known = set(warnings(old, self._run.data))
        report.warnings = [each for each in warnings(new, self._run.data) if each not in known]
        return new, report

    async def _apply(self, old: Configuration, new: Configuration) -> list[str]:
        """Prepare every part, and then apply all of them."""
        async with AsyncExitStack() as stack:
            switches = [await prepare(old, new, stack) for prepare in self._parts]
            stack.pop_all()
        self._run.configuration = new
        try:
            return [line for switch in switches for line in await switch() or ()]
        except StartError:  # of the first uplink, before anything else has changed
            self._run.configuration = old
            raise

    def _log(self, report: "Report", by: str) -> None:
        """Log the result, and call the listeners."""
        text = report.text()
        for each in report.refused:
            logger.error("reload, requested by %s, is refused: %s", by, each["error"])
        for warning in report.warnings:
            logger.warning("%s", warning)
        if not report.refused:
            logger.info("reload, requested by %s: %s", by, text)
        severity = "error" if report.refused else "warning" if report.restart else "info"
        keys = [each.key for each in report.changed] or ["files" if report.files else "nothing"]
        subject = "refused" if report.refused else _named(keys)
        self._run.event.once("reload", subject, f"requested by {by}: {text}", severity)


class Report:
    """The result of each change of a reload."""

    def __init__(
        self,
        file: str,
        changed: "list[Change] | None" = None,
        restart: "list[tuple[Change, str]] | None" = None,
        refused: list[dict[str, object]] | None = None,
    ) -> None:
        self.file = file
        self.changed = changed or []
        self.restart = restart or []
        self.refused = refused or []
        self.files: list[str] = []
        self.warnings: list[str] = []

    def answer(self) -> Answer:
        """Return it in the form of the query's answer."""
        counts = (len(self.changed), len(self.restart), len(self.refused))
        return {
            "file": self.file,
            "changed": [each.row() for each in self.changed[:MAXIMUM_SHOWN]],
            "restart": [
                {**each.row(), "reason": reason} for each, reason in self.restart[:MAXIMUM_SHOWN]
            ],
            "refused": self.refused[:MAXIMUM_SHOWN],
            "files": self.files[:MAXIMUM_SHOWN],
            "warnings": self.warnings[:MAXIMUM_SHOWN],
            "counts": dict(zip(("changed", "restart", "refused"), counts, strict=True)),
        }

    def text(self) -> str:
        """Return it in one line."""
        parts = [f"refused: {each['error']}" for each in self.refused[:1]]
        if self.changed:
            parts.append(f"changed {_named([each.key for each in self.changed])}")
        if self.restart:
            parts.append(
                f"a restart is needed for {_named([each.key for each, _ in self.restart])}"
            )
        parts += self.files[:NAMED]
        return "; ".join(parts) or "nothing has changed"


def _no_file() -> Configuration:
    raise StartError("the gateway was started without --config: there is no file to read again")


def _named(keys: list[str]) -> str:
    keys = list(dict.fromkeys(keys))
    more = f" and {len(keys) - NAMED} more" if len(keys) > NAMED else ""
    return ", ".join(keys[:NAMED]) + more


def _refusals(error: ConfigurationError | StartError) -> list[dict[str, object]]:
    errors = error.errors if isinstance(error, ManyConfigurationErrors) else (error,)
    return [{"key": getattr(each, "key", ""), "error": str(each)} for each in errors]


async def _levels(_old: Configuration, new: Configuration, _stack: AsyncExitStack) -> Switch:
    async def switch() -> None:
        set_levels(new.log)

    return switch
