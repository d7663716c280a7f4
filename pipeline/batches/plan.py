"""What a run has to do: which batches, of which landing files. Pure: no disk, no Spark."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pipeline.errors import PipelineError
from pipeline.landing.listing import kind
from pipeline.settings import BatchSize
from pipeline.tables.damage import Damaged
from pipeline.tables.state import Mark

Files = Mapping[str, Mark]


@dataclass(frozen=True)
class Batch:
    """A batch to be done, or done again, under its number."""

    number: int
    files: dict[str, Mark]
    again: bool = False
    """Whether it was committed under this number."""


@dataclass
class Plan:
    """The batches to do in this order, and those of which nothing shall remain before."""

    batches: list[Batch] = field(default_factory=list)
    forget: list[int] = field(default_factory=list)

    def each(self, count: Callable[[Files], Mapping[str, int]], most: int) -> Iterator[Batch]:
        """Yield the batches, new ones in parts of so many rows at most, or of one file.

        `count` returns the rows of each file, and is asked when a batch is the next.
        """
        place = 0
        while place < len(self.batches):
            end = place + 1
            if not self.batches[place].again:
                end = place + self._divide(place, count(self.batches[place].files), most)
            yield from self.batches[place:end]
            place = end

    def _divide(self, place: int, rows: Mapping[str, int], most: int) -> int:
        """Put parts in the place of a batch, and number those after it; return how many parts."""
        whole = self.batches[place]
        parts = _parts(whole.files, rows, most)
        files = [*parts, *(each.files for each in self.batches[place + 1 :])]
        self.batches[place:] = [Batch(whole.number + n, part) for n, part in enumerate(files)]
        return len(parts)


def make_plan(
    damaged: Iterable[Damaged], new: Files, files: Files, last: int, largest: BatchSize
) -> Plan:
    """Return what brings the tables up to the landing folder.

    `files` are the landing files, `new` those that no batch read, and `last` is the highest
    number of a batch. A damaged batch is done again; one that was never committed is taken out,
    and its files are new. Raises PipelineError rather than take out rows that no landing file
    could bring back.
    """
    plan = Plan()
    free = dict(new)
    for batch in sorted(damaged):
        gone = batch.files - files.keys()
        if batch.rows and gone:
            raise _cannot_redo(batch.number, gone)
        plan.forget.append(batch.number)
        again = {name: files[name] for name in sorted(batch.files & files.keys())}
        if batch.committed and again:
            plan.batches.append(Batch(batch.number, again, again=True))
            free = {name: mark for name, mark in free.items() if name not in again}
        else:
            free |= again
    ordered = {name: free[name] for name in sorted(free, key=_place)}
    plan.batches += [
        Batch(last + 1 + index, part) for index, part in enumerate(_cut(ordered, largest))
    ]
    return plan


def _place(name: str) -> tuple[str, bool, str]:
    """Return what a file is sorted by: what a gateway says of itself comes before its records.

    So no row is timed anew because a batch ended between it and its clock record.
    """
    return name.partition("/")[0], kind(name) == "records", name


def _cannot_redo(number: int, gone: frozenset[str]) -> PipelineError:
    return PipelineError(
        f"batch {number} of the tables differs from its commit and {len(gone)} of its "
        f"landing files are missing (first: {min(gone)}): put them back, or move the tables away"
        " (tidegate docs pipeline)"
    )


def _parts(files: Files, rows: Mapping[str, int], most: int) -> list[dict[str, Mark]]:
    parts: list[dict[str, Mark]] = []
    held = 0
    for name, mark in files.items():
        if not parts or held + rows[name] > most:
            parts.append({})
            held = 0
        parts[-1][name] = mark
        held += rows[name]
    return parts


def _cut(files: Files, largest: BatchSize) -> list[dict[str, Mark]]:
    parts: list[dict[str, Mark]] = []
    size = 0
    for name, mark in files.items():
        if not parts or size + mark.size > largest.bytes or len(parts[-1]) >= largest.files:
            parts.append({})
            size = 0
        parts[-1][name] = mark
        size += mark.size
    return parts
