"""`tidegate crashtest`: kills a gateway on the user's own device and compares what it kept."""

import asyncio
import shutil
import sys
import tempfile
from pathlib import Path
from random import SystemRandom

from crashtest.device import check_free_space, device_of
from crashtest.full_database import WITHOUT_FLEET, Full, fill
from crashtest.gateway_process import EndedError, GatewayProcess
from crashtest.participant import HangError
from crashtest.report import report
from crashtest.rounds import Rounds
from gateway.errors import TidegateError

SEEDS = 1_000_000


def crashtest(data: Path, rounds: int, seconds: float, seed: int | None) -> int:
    """Run it in a new folder below `data`; return 0 if the promise was kept, 1 if not.

    The folder is removed at the end, unless the promise was broken: then it is named. Raises
    TidegateError if the test cannot be run.
    """
    if seed is None:
        seed = SystemRandom().randrange(SEEDS)
    folder = _scratch(data)
    print(f"crash test in {folder} ({device_of(folder)}): {rounds} rounds, seed {seed}", flush=True)
    findings: list[str] = []
    try:
        findings = asyncio.run(_run(folder, rounds, seconds, seed))
    finally:
        if not findings:
            shutil.rmtree(folder, ignore_errors=True)
    if findings:
        print(f"Repeat with --seed {seed}; files and log are left in {folder}.")
    return 1 if findings else 0


def _scratch(data: Path) -> Path:
    try:
        data.mkdir(parents=True, exist_ok=True)
        check_free_space(data)
        return Path(tempfile.mkdtemp(prefix="crashtest-", dir=data)).resolve()
    except OSError as error:
        raise TidegateError(f"{data}: {error.strerror}") from error


async def _run(folder: Path, count: int, seconds: float, seed: int) -> list[str]:
    """Print the report and return what was found."""
    kills, filled = folder / "kills", folder / "full"
    kills.mkdir()
    filled.mkdir()
    rounds = Rounds(GatewayProcess(kills), seed, seconds)
    if sys.stdout.isatty():
        rounds.on_round = lambda number: print(f"\rround {number}/{count}", end="", flush=True)
    full: Full | None = None
    try:
        await rounds.run(count)
        if not rounds.findings:
            full = await _fill(filled, seed, rounds.findings)
    except (EndedError, HangError, OSError, TimeoutError) as error:
        rounds.findings.append(f"{type(error).__name__}: {error}")
    if sys.stdout.isatty():
        print()
    print(report(rounds, full, rounds.findings))
    return rounds.findings


async def _fill(folder: Path, seed: int, findings: list[str]) -> Full:
    gateway = GatewayProcess(folder, WITHOUT_FLEET)
    try:
        return await fill(gateway, seed, findings)
    finally:
        gateway.kill()
