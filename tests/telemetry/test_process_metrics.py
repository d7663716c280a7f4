import os
import time
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway.telemetry import process_metrics as module
from gateway.telemetry.process_metrics import process_metrics


def values() -> dict[str, float]:
    families = text_string_to_metric_families(process_metrics())
    return {sample.name: sample.value for family in families for sample in family.samples}


def test_they_are_this_process_s() -> None:
    found = values()
    times = os.times()
    assert abs(found["process_cpu_seconds_total"] - times.user - times.system) < 5
    status = Path("/proc/self/status").read_text().split("VmRSS:")[1].split()
    assert found["process_resident_memory_bytes"] == pytest.approx(int(status[0]) * 1024, rel=0.2)
    assert found["process_virtual_memory_bytes"] > found["process_resident_memory_bytes"]
    assert time.time() - 3600 < found["process_start_time_seconds"] < time.time() + 1
    assert 3 <= found["process_open_fds"] < found["process_max_fds"]
    assert found["process_threads"] >= 1


def test_a_file_more_is_one_more() -> None:
    before = values()["process_open_fds"]
    with Path("/dev/null").open():
        assert values()["process_open_fds"] == before + 1


def test_where_the_kernel_tells_nothing_there_are_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(module, "STAT", tmp_path / "stat")
    assert process_metrics() == ""
