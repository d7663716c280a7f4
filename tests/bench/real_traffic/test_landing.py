import json
from pathlib import Path

import pytest

from bench.real_traffic import landing


def put(file: Path, numbers: list[int]) -> None:
    file.parent.mkdir(exist_ok=True)
    records = [{"epoch": "00", "stream": "main", "seq": number} for number in numbers]
    file.write_text("".join(json.dumps(record) + "\n" for record in records))


def test_a_message_that_was_written_twice_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landing, "STEP_SECONDS", 0.0)
    put(tmp_path / "barn" / "00.main.1-3.3.jsonl", [1, 2, 3])
    put(tmp_path / "barn" / "00.main.3-4.2.jsonl", [3, 4])
    assert landing.records_in(tmp_path, 5) == 4


def test_what_does_not_come_is_not_waited_for_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landing, "WAIT_SECONDS", 0.0)
    assert landing.records_in(tmp_path, 5) == 0
