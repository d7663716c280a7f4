"""Reports of runs to a server of OpenLineage, or into a file.

They are sent beside the run: a server that is away neither fails nor delays it.
"""

import os
import re
import sys
import threading
import uuid
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from deltalake.exceptions import DeltaError

from pipeline.errors import BusyError, PipelineError
from pipeline.operation.once import PLAINLY, How, Totals, run_once
from pipeline.printable import printable
from pipeline.settings import Settings, Watch

if TYPE_CHECKING:
    from openlineage.client.event_v2 import RunEvent
    from openlineage.client.transport import Transport
    from pyspark.sql import SparkSession

TIMEOUT = 5.0
"""Seconds that a server has for an event, and that the end of a run waits for all of its events."""
KEY_VARIABLE = "OPENLINEAGE_API_KEY"
"""A variable that programs with OpenLineage have."""
_HTTP = re.compile("https?://[^/]")
_URL = re.compile("[A-Za-z][A-Za-z0-9+.-]*://")


def run_reported(
    settings: Settings, open_session: "Callable[[], SparkSession]", how: How = PLAINLY
) -> Totals:
    """Do what `run_once` does, and report it to `how.lineage` if there is one."""
    if how.lineage is None:
        return run_once(settings, open_session, how)
    with Run(settings, how.lineage) as run:
        run.totals = run_once(settings, open_session, replace(how, watch=run.watched(how.watch)))
        return run.totals


class Lineage:
    """Sends events one after the other, in threads: two for each run."""

    def __init__(self, target: str) -> None:
        """Take the URL of a server, or a file that gets a line for each event.

        Raises PipelineError for another URL, and without the client library.
        """
        if find_spec("openlineage") is None:
            raise PipelineError("--openlineage needs its library: pip install openlineage-python")
        self.target = target
        self._transport = _transport(target)
        self._sending: threading.Thread | None = None
        self._fault = ""
        """Why the last event was not sent."""
        self._said = False

    def send(self, event: "RunEvent") -> None:
        """Send an event after those before it, in a thread that no end of the program waits for."""
        work = (self._sending, event)
        self._sending = threading.Thread(target=self._send, args=work, daemon=True)
        self._sending.start()

    def settle(self) -> None:
        """Wait until all is sent, for TIMEOUT at most; say it once if it cannot be sent."""
        fault = self._fault
        if self._sending is not None:
            self._sending.join(TIMEOUT)
            late = self._sending.is_alive()
            fault = f"no answer in {TIMEOUT:g} s" if late else self._fault
        if fault and not self._said:
            text = f"cannot report to {self.target}: {fault}; runs continue without it"
            print(f"tidegate-pipeline: {printable(text)}", file=sys.stderr, flush=True)
        self._said = bool(fault)

    def _send(self, before: threading.Thread | None, event: "RunEvent") -> None:
        from requests import RequestException

        if before is not None:
            before.join()
        try:
            self._transport.emit(event)
        except (RequestException, OSError, RuntimeError) as error:
            reason = getattr(error.args[0], "reason", error) if error.args else error
            self._fault = " ".join(str(reason).split())
        else:
            self._fault = ""


def _transport(target: str) -> "Transport":
    from openlineage.client.transport.file import FileConfig, FileTransport
    from openlineage.client.transport.http import HttpConfig, HttpTransport, create_token_provider

    if _HTTP.match(target):
        key = os.environ.get(KEY_VARIABLE)
        auth = create_token_provider({"type": "api_key", "apiKey": key} if key else {})
        retry = {"total": 0}  # TIMEOUT bounds an event
        return HttpTransport(HttpConfig(target, timeout=TIMEOUT, auth=auth, retry=retry))
    if _URL.match(target):
        raise PipelineError(f"--openlineage {target} is neither http(s)://… nor a file")
    return FileTransport(FileConfig(str(Path(target).absolute()), append=True))


class Run:
    """One run, which reports its beginning with its first step, and its end with that of `with`.

    One that finds nothing new is not reported, as it has no row in the table `runs`.
    """

    totals: Totals | None = None

    def __init__(self, settings: Settings, lineage: Lineage) -> None:
        self._settings, self._lineage = settings, lineage
        self._id = str(uuid.uuid4())
        self._before: dict[str, int] | None = None
        """The versions of the tables when the beginning was reported."""

    def watched(self, watch: Watch) -> Watch:
        """Return a watch that reports the beginning with the first step."""

        def seen(step: str, done: int, whole: int) -> None:
            self._begin()
            watch(step, done, whole)

        return seen

    def __enter__(self) -> Self:
        """Begin to watch the run."""
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """Report how it ended, if there is something to report."""
        if error is not None and not isinstance(error, BusyError):
            self._begin()
        if self._before is not None:
            ended = "FAIL" if isinstance(error, Exception) else "ABORT"
            self._report("COMPLETE" if error is None else ended, error)
            self._lineage.settle()

    def _begin(self) -> None:
        if self._before is None:
            self._before = {}
            self._report("START")

    def _report(self, state: str, error: BaseException | None = None) -> None:
        """Send an event; where the tables cannot be read, as on a full disk, without them."""
        from pipeline.operation.lineage_events import landing_dataset, run_event, versions, written

        root, outputs = self._settings.tables, []
        try:
            if state == "START":
                self._before = versions(root)
            else:
                outputs = list(written(root, self._before or {}))
        except (OSError, DeltaError) as fault:
            error = error or fault
        files = None if self.totals is None else self.totals.files
        landing = landing_dataset(self._settings.landing, files)
        self._lineage.send(run_event(state, self._id, root, [landing], outputs, error))
