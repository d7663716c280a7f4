from pathlib import Path

import pytest

from pipeline.batches.bronze import rows_of
from pipeline.place import place_of
from pipeline.records import reasons
from pipeline.tables.columns import QUARANTINE, names
from tests.support.disk.landing_files import name_for, put_records, record


def test_a_task_reads_the_files_that_it_is_given(tmp_path: Path) -> None:
    put_records(tmp_path, [record(1), b"[]"])
    put_records(tmp_path, [record(1, gateway_id="shed")], gateway="shed")
    put_records(tmp_path, [record(9)], first=9)
    given = [f"barn/{name_for(2)}", f"shed/{name_for(1)}"]
    found = rows_of(place_of(tmp_path), given)
    rows = [dict(zip(names(QUARANTINE), row, strict=True)) for row in found]
    assert [(row["landing_file"], row["line"], row["reason"]) for row in rows] == [
        (given[0], 1, None),
        (given[0], 2, reasons.NOT_AN_OBJECT),
        (given[1], 1, None),
    ]


def test_a_file_that_is_gone_stops_the_task(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"gone\.jsonl"):
        list(rows_of(place_of(tmp_path), ["barn/gone.jsonl"]))
