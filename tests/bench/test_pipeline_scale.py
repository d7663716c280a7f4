"""The rows that the benchmark of whole runs lands, and what it computes from their costs."""

from pathlib import Path

import pytest

from bench.pipeline_scale import Cost, forecast, land
from pipeline.landing.landing_parquet import read_landing_parquet
from pipeline.place import place_of


def test_all_rows_are_records_whose_numbers_have_no_gap(tmp_path: Path) -> None:
    land(tmp_path, rows=25_000, gateways=7)
    found: dict[str, list[int]] = {}
    for file in sorted(tmp_path.glob("*/*.parquet")):
        name = file.relative_to(tmp_path).as_posix()
        for batch in read_landing_parquet(place_of(tmp_path), name):
            assert batch["reason"].null_count == batch.num_rows
            for gateway, seq in zip(batch["gateway_id"], batch["seq"], strict=True):
                found.setdefault(gateway.as_py(), []).append(seq.as_py())
    assert len(found) == 7
    assert all(seqs == [*range(1, len(seqs) + 1)] for seqs in found.values())
    assert sum(map(len, found.values())) == 25_000


def test_a_forecast_is_the_plane_through_what_was_measured(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cases = [(1_000_000, 1_000), (3_000_000, 1_000), (1_000_000, 100_000)]
    costs = {
        (rows, gateways): Cost(
            2 + gateways * 1e-5, 3 + rows * 1e-6, 1 + rows * 2e-5 + gateways * 3e-6, 0, 0, 0, 0
        )
        for rows, gateways in cases
    }
    forecast(costs)
    said = capsys.readouterr().out
    assert "driver: 5.0 s a run, 1.00 µs a row, 10.0 µs a gateway" in said
    assert "tasks: 1.0 s a run, 20.00 µs a row, 3.0 µs a gateway" in said
    assert "| 100,000 | 83,333 | 1.7 | 0.18 cores |" in said
