"""What a run has to do: which batches, of which landing files. Pure: no disk, no Spark."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from pipeline.checkpoint import Commit, Range
from pipeline.errors import PipelineError

BATCH_BYTES_MAX = 256 * 1024 * 1024
"""Bytes of landing files in one batch, about 800,000 records; a larger file is one by itself."""
BATCH_FILES_MAX = 10_000

Rows = Mapping[str, int]


@dataclass(frozen=True)
class Batch:
    """A batch to be done, or done again, under its number."""

    number: int
    files: dict[str, int]
    """Landing files and their sizes."""


@dataclass
class Plan:
    """The batches to do in this order, and those of which nothing shall remain."""

    batches: list[Batch] = field(default_factory=list)
    forget: list[int] = field(default_factory=list)


def make_plan(
    commits: Mapping[int, Commit],
    found: Mapping[int, Rows],
    files: Mapping[str, int],
    origins: Callable[[int], Iterable[str]],
) -> Plan:
    """Return what brings the tables up to the landing folder.

    `found` has the rows that are in the tables by batch, `files` the landing files with sizes,
    and `origins` names the landing files that a batch's rows in the tables came from. A commit
    is trusted while the tables hold as many rows as it says; else its batch is done again.
    Rows without a commit are taken out; their files are new again. Raises PipelineError rather
    than take out rows that no landing file could bring back.
    """
    plan = Plan()
    known: set[tuple[str, int]] = set()
    for number in sorted({*commits, *found}):
        commit, rows = commits.get(number), found.get(number, {})
        if commit is not None and _holds(rows, commit.rows):
            known.update(commit.files.items())
            continue
        wanted = set(commit.files if commit else origins(number))
        if any(rows.values()) and not wanted <= files.keys():
            raise _cannot_redo(number, wanted - files.keys())
        again = {name: files[name] for name in sorted(wanted & files.keys())}
        if commit is None or not again:
            plan.forget.append(number)
        else:
            plan.batches.append(Batch(number, again))
            known.update(again.items())
    new = {name: size for name, size in files.items() if (name, size) not in known}
    first = max({*commits, *found}.difference(plan.forget), default=0) + 1
    plan.batches += [Batch(first + place, part) for place, part in enumerate(_cut(new))]
    return plan


def overlapping(ranges: Iterable[Range], commits: Iterable[Commit]) -> list[int]:
    """Return the batches of those commits which may share a key with these ranges."""
    spans = {span[:3]: (span.seq_min, span.seq_max) for span in ranges}
    return [
        commit.batch for commit in commits if any(_meets(span, spans) for span in commit.ranges)
    ]


def _meets(span: Range, spans: Mapping[tuple[str, str, str], tuple[int, int]]) -> bool:
    low, high = spans.get(span[:3], (1, 0))
    return low <= high and low <= span.seq_max and span.seq_min <= high


def _holds(rows: Rows, committed: Rows) -> bool:
    return all(rows.get(table, 0) == count for table, count in committed.items())


def _cannot_redo(number: int, gone: set[str]) -> PipelineError:
    return PipelineError(
        f"batch {number} of the tables differs from its checkpoint and {len(gone)} of its "
        f"landing files are gone (first: {min(gone)}): put them back, or move the tables away"
    )


def _cut(files: Mapping[str, int]) -> list[dict[str, int]]:
    parts: list[dict[str, int]] = []
    size = 0
    for name, length in files.items():
        if not parts or size + length > BATCH_BYTES_MAX or len(parts[-1]) >= BATCH_FILES_MAX:
            parts.append({})
            size = 0
        parts[-1][name] = length
        size += length
    return parts
