"""What a person sees while a board is written: lines, and a progress bar on a terminal."""

import contextlib
import sys
from collections.abc import Iterator

from gateway.flashing.board import Progress


class Reporter:
    """Prints lines; shows a bar where standard output is a terminal."""

    def say(self, line: str) -> None:
        """Show a line."""
        print(line, flush=True)

    @contextlib.contextmanager
    def progress(self, what: str, total: int) -> Iterator[Progress]:
        """Show how many of `total` bytes are done; the function takes how many more."""
        if not total or not sys.stdout.isatty():
            yield lambda _count: None
            return
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
        with Progress(*columns) as bar:
            task = bar.add_task(what, total=total)
            yield lambda count: bar.advance(task, count)
