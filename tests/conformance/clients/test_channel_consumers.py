"""Consumers of a channel as each library has them, with no setting changed but the QoS."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway.broker.channels.channel import Channel
from gateway.broker.instant import Instant
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.disk.storage import until
from tests.support.gateway_here import Gateway, started
from tests.support.ports import free_port
from tests.support.requirements import CLIENTS
from tests.support.waiting import SECONDS

pytestmark = pytest.mark.uncovered

HERE = Path(__file__).parent / "consumers"
QUEUE = "$queue/jobs"
MESSAGES = 200

CONFIGURATION = """\
[[listener]]
port = {port}
[[channel]]
name = "jobs"
filter = "jobs/#"
inflight_timeout = {timeout}
"""


def configuration(timeout: float) -> str:
    return CONFIGURATION.format(port=free_port(), timeout=timeout)


LIBRARIES = [
    pytest.param("mosquitto_sub", marks=pytest.mark.mosquitto_clients),
    "paho",
    pytest.param("aiomqtt", marks=pytest.mark.aiomqtt),
    pytest.param("mqtt_js", marks=pytest.mark.mqtt_js),
]


def command(library: str, port: int, qos: str, *more: str) -> list[str]:
    if library == "mosquitto_sub":
        options = ["-q", qos] if qos else []
        return ["stdbuf", "-oL", library, "-p", str(port), "-t", QUEUE, *options]
    program = "node" if library == "mqtt_js" else sys.executable
    file = HERE / f"with_{library}.{'js' if library == 'mqtt_js' else 'py'}"
    return [program, str(file), str(port), QUEUE, *filter(None, [qos]), *more]


@asynccontextmanager
async def consumer(*words: str) -> AsyncIterator[asyncio.StreamReader]:
    """Give what a consumer prints; it is killed at the end."""
    paths = {"NODE_PATH": str(CLIENTS / "node_modules"), "PYTHONPATH": str(CLIENTS)}
    process = await asyncio.create_subprocess_exec(
        *words,
        env={**os.environ, **paths},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert process.stdout is not None
    try:
        yield process.stdout
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def lines(output: asyncio.StreamReader, count: int) -> list[str]:
    """Return the next lines."""
    async with asyncio.timeout(SECONDS):
        return [(await output.readline()).decode().strip() for _ in range(count)]


def port_of(gateway: Gateway) -> int:
    return gateway.listeners[0].port


def channel_of(gateway: Gateway) -> Channel:
    (channel,) = gateway.broker.channels.named("jobs")
    return channel


def publish(gateway: Gateway, count: int) -> None:
    for number in range(count):
        instant: Instant = gateway.turn.instant
        message = Message(f"jobs/{number % 7}", b"%d" % number, 1, arrived=instant.monotonic)
        assert gateway.broker.publish(message, instant) == ReasonCode.SUCCESS


@pytest.mark.parametrize("library", LIBRARIES)
async def test_one_without_acknowledgements_is_refused_and_loses_nothing(
    tmp_path: Path, library: str, caplog: pytest.LogCaptureFixture
) -> None:
    """QoS 0 is the default of each of them."""
    async with started(tmp_path, configuration(30)) as gateway:
        publish(gateway, 3)
        async with consumer(*command(library, port_of(gateway), "")) as output:
            (line,) = await lines(output, 1)
            assert "refused" in line or "denied" in line
            channel = channel_of(gateway)
            assert (channel.depth, channel.figures.delivered) == (3, 0)
        assert "QoS 0" in caplog.text


@pytest.mark.parametrize("library", LIBRARIES)
async def test_what_a_killed_one_did_not_acknowledge_goes_to_the_next(
    tmp_path: Path, library: str
) -> None:
    async with started(tmp_path, configuration(30)) as gateway:
        port, channel = port_of(gateway), channel_of(gateway)
        publish(gateway, MESSAGES)
        async with consumer(*command(library, port, "1")) as output:
            first = await lines(output, 5)
        first += (await output.read()).decode().split()
        await until(lambda: not channel.in_flight)
        left = channel.depth
        assert channel.figures.acknowledged == MESSAGES - left
        publish(gateway, 1)
        async with consumer(*command(library, port, "1")) as output:
            second = await lines(output, left + 1 + (library != "mosquitto_sub"))
            await until(lambda: channel.figures.acknowledged == MESSAGES + 1)
            assert (channel.depth, channel.in_flight) == (0, 0)
        came = [line for line in second if line.isdecimal()]
        assert len({*came[:-1]}) == left
        if library == "paho":  # acknowledges what is done, and the last one may be done again
            done = {line for line in first if line.isdecimal()}
            assert {*done, *came} == {str(number) for number in range(MESSAGES)}


async def test_a_job_longer_than_its_time_runs_once(tmp_path: Path) -> None:
    """And so do those that wait in the consumer behind it."""
    async with started(tmp_path, configuration(0.5)) as gateway:
        publish(gateway, 3)
        words = command("paho", port_of(gateway), "1", "1.5")
        async with consumer(*words) as output:
            assert await lines(output, 4) == ["subscribed", "0", "1", "2"]
            figures = channel_of(gateway).figures
            await until(lambda: figures.acknowledged == 3)
            assert figures.delivered == 3
            assert figures.timed_out > 3
