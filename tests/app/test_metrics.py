"""The figures and the health of a whole gateway, asked for over HTTP."""

import asyncio
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway.config.load import load
from gateway.errors import StartError
from gateway.storage.engine import writer
from gateway.telemetry.health import INTERVAL
from tests.support.gateway_here import Gateway
from tests.support.ports import free_port

CONFIG = """
[gateway]
id = "barn"
[[listener]]
port = {port}
[metrics]
port = {metrics}
[uplink]
[[uplink.rule]]
topic = "sensors/#"
where = "payload.value > 20"
"""


class Asked:
    """A gateway with its scrape endpoint."""

    def __init__(self, gateway: Gateway, port: int) -> None:
        self.gateway = gateway
        self.port = port

    async def get(self, path: str) -> tuple[int, str, str]:
        """Return status, content type and body."""
        return await asyncio.to_thread(self._get, path)

    def _get(self, path: str) -> tuple[int, str, str]:
        url = f"http://127.0.0.1:{self.port}{path}"
        try:
            with urllib.request.urlopen(url, timeout=30) as response:
                return response.status, response.headers["Content-Type"], response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers["Content-Type"], error.read().decode()


async def started(folder: Path, stack: AsyncExitStack, port: int) -> Gateway:
    file = folder / "gateway.toml"
    file.write_text(CONFIG.format(port=free_port(), metrics=port))
    gateway = Gateway(load(file), folder / "data", stack)
    await gateway.start()
    return gateway


@pytest.fixture
async def asked(tmp_path: Path) -> AsyncIterator[Asked]:
    """Give a running gateway."""
    port = free_port()
    async with AsyncExitStack() as stack:
        yield Asked(await started(tmp_path, stack, port), port)


async def test_another_program_reads_every_number(asked: Asked) -> None:
    status, content_type, text = await asked.get("/metrics")
    assert (status, content_type) == (200, "text/plain; version=0.0.4; charset=utf-8")
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert families["tidegate_info"].samples[0].labels["id"] == "barn"
    samples = {sample.name: sample for one in families.values() for sample in one.samples}
    assert samples["tidegate_rule_evaluated_total"].labels == {"rule": "0"}
    assert samples["tidegate_rule_info"].labels == {
        "rule": "0",
        "topic": "sensors/#",
        "where": "payload.value > 20",
        "stream": "main",
    }
    assert samples["tidegate_clients_connected"].value == 0
    assert samples["tidegate_retained_messages"].value > 0
    numbers = [
        name for name, value in asked.gateway.counters.values.items() if not isinstance(value, str)
    ]
    assert len(numbers) > 50
    assert sum(len(one.samples) for one in families.values()) >= len(numbers)


async def test_alarms_are_shown_while_they_last_and_after(asked: Asked) -> None:
    alarm = asked.gateway.alarm
    for text, shown in (("", ""), ("it leaks", "1"), ("", "0")):
        alarm("x", text)
        _, _, page = await asked.get("/metrics")
        assert (f'\ntidegate_alarm{{alarm="x"}} {shown}\n' in page) == bool(shown)


async def test_figures_are_those_of_the_moment(asked: Asked) -> None:
    asked.gateway.telemetry.sys_topics.stop()
    asked.gateway.broker.traffic.messages_received = 41
    _, _, text = await asked.get("/metrics")
    assert "\ntidegate_publish_messages_received_total 41\n" in text


async def test_health(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await asked.get("/healthz") == (200, "text/plain; charset=utf-8", "ok\n")
    storage = asked.gateway.writer
    attempts = storage.attempts
    monkeypatch.setattr(attempts, "_recovered", lambda: None)  # by a commit of these moments
    attempts.failing = True
    status, _, text = await asked.get("/healthz")
    assert (status, text) == (503, "the database cannot be written: publishers are refused\n")
    assert (await asked.get("/readyz"))[0] == 503
    assert await asked.get("/livez") == (200, "text/plain; charset=utf-8", "ok\n")
    attempts.failing, storage.refuses = False, "the database is damaged"
    status, _, text = await asked.get("/healthz")
    assert (status, text) == (503, "the database is damaged: publishers are refused\n")
    storage.refuses = ""
    assert (await asked.get("/healthz"))[0] == 200


async def test_a_full_disk_and_a_full_writer_are_trouble(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = asked.gateway.writer.attempts.free_space
    assert room is not None
    room.exhausted = True
    status, _, text = await asked.get("/healthz")
    assert (status, text) == (503, "the disk is full: publishers are refused\n")
    room.exhausted = False
    monkeypatch.setattr(writer, "MAX_PENDING_ROWS", 0)
    status, _, text = await asked.get("/healthz")
    assert status == 503
    assert text.endswith(" rows wait for the disk: publishers are refused\n")


async def test_a_loop_that_stood_still_is_trouble(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.telemetry.health.STILL", -1.0)  # any beat is late
    await asyncio.sleep(2 * INTERVAL)  # it has beaten by now, however late
    status, _, text = await asked.get("/healthz")
    assert status == 503
    assert text.startswith("the event loop stood still for ")


async def test_other_paths(asked: Asked) -> None:
    assert await asked.get("/") == (404, "text/plain; charset=utf-8", "Not Found\n")


async def test_a_busy_port_ends_the_start(asked: Asked, tmp_path: Path) -> None:
    (tmp_path / "second").mkdir()
    async with AsyncExitStack() as stack:
        with pytest.raises(StartError, match=f"cannot serve metrics at 127.0.0.1:{asked.port}"):
            await started(tmp_path / "second", stack, asked.port)
