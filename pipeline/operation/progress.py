"""What a run is doing, as bars on a terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pipeline.settings import Watch, unwatched


@contextmanager
def bars() -> Iterator[Watch]:
    """Show the reported steps while this lasts, if stderr is a terminal; they vanish then."""
    if not sys.stderr.isatty():
        yield unwatched
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description:<16}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %"),
    )
    console = Console(stderr=True)
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        shown: dict[str, int] = {}

        def watch(step: str, done: int, whole: int) -> None:
            if step not in shown:
                shown[step] = progress.add_task(step, total=whole)
            progress.update(shown[step], completed=done, total=whole)  # type: ignore[arg-type]

        yield watch
