"""Tests that need a tool beside Python: skipped without it, and told of at the end.

A test names what it needs with a marker. What was skipped, for whatever reason, is one line for
each reason at the end. With TIDEGATE_TESTS=all, or `strict`, that fails the run, but for what this
machine does not allow and what has a target of its own.
"""

import os
import shutil
import subprocess
import sysconfig
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

NOT_ALLOWED = "this machine does not allow"
"""How the reason begins that no installation can do away with."""

LEFT_TO = "with a target of its own"
"""How the reason begins for tests that another target of the Makefile runs."""

WANTED = os.environ.get("TIDEGATE_TESTS", "")

SYSTEM_FOLDERS = os.pathsep.join(["/usr/local/sbin", "/usr/sbin", "/sbin"])


def find_program(name: str) -> str | None:
    """Return the path of a program, also of one in the folders of the system's own tools."""
    return shutil.which(name) or shutil.which(name, path=SYSTEM_FOLDERS)


CLIENTS = Path(__file__).parents[2] / ".tools/clients"
AZURITE = Path(__file__).parents[2] / ".tools/azurite/node_modules/.bin/azurite-blob"
PROMTOOL = Path(__file__).parents[2] / ".tools/promtool/promtool"


def programs(*names: str) -> Callable[[], bool]:
    return lambda: all(find_program(name) for name in names)


def find_micropython() -> bool:
    from tests.support.nodes.micropython import find

    return find() is not None


def can_boot() -> bool:
    from tests.support.processes.booted_systemd import can_boot

    return can_boot()


def can_compile() -> bool:
    return bool(shutil.which("cc")) and Path(sysconfig.get_path("include"), "Python.h").is_file()


def can_mount() -> bool:
    """Return whether this process may mount a file system; root in a container may not."""
    with tempfile.TemporaryDirectory() as folder:
        mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tidegate", folder]
        if not shutil.which("mount") or subprocess.run(mount, check=False).returncode:
            return False
        return subprocess.run(["umount", folder], check=False).returncode == 0


def can_trace() -> bool:
    """Return whether strace is there and may look at any process of ours."""
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    return bool(find_program("strace")) and (
        os.geteuid() == 0 or not scope.exists() or scope.read_text().strip() == "0"
    )


@dataclass(frozen=True, slots=True)
class Requirement:
    """What a marker stands for: its name to people, whether it is there, how to get it.

    What only a machine that allows it can have is `of_the_machine`: its tests are left out
    elsewhere, and told of, also where nothing that could be installed may be missing.
    """

    name: str
    is_there: Callable[[], bool]
    get_it: str
    of_the_machine: bool = False

    @property
    def reason(self) -> str:
        """Why a test is skipped without it."""
        if self.of_the_machine:
            return f"{NOT_ALLOWED} {self.name}; try: {self.get_it}"
        return f"{self.name} is missing; get it with: {self.get_it}"


REQUIREMENTS = {
    "mosquitto": Requirement(
        "mosquitto", programs("mosquitto", "mosquitto_passwd"), "sudo apt-get install mosquitto"
    ),
    "mosquitto_clients": Requirement(
        "mosquitto_pub",
        programs("mosquitto_pub", "mosquitto_sub"),
        "sudo apt-get install mosquitto-clients",
    ),
    "curl": Requirement("curl", programs("curl"), "sudo apt-get install curl"),
    "spark": Requirement(
        "a Java runtime", programs("java"), "sudo apt-get install default-jre-headless"
    ),
    "micropython": Requirement("MicroPython", find_micropython, "tests/support/get_micropython.sh"),
    "systemd": Requirement(
        "systemd-analyze",
        programs("systemd-analyze", "systemd-sysusers", "systemd-tmpfiles"),
        "sudo apt-get install systemd",
    ),
    "nspawn": Requirement(
        "systemd-nspawn to boot a system",
        can_boot,
        "sudo apt-get install systemd-container && sudo make test",
        of_the_machine=True,
    ),
    "compiler": Requirement(
        "a C compiler (or Python.h)", can_compile, "sudo apt-get install gcc python3-dev"
    ),
    "strace": Requirement(
        "strace to look at processes",
        can_trace,
        "sudo apt-get install strace && sudo make test",
        of_the_machine=True,
    ),
    "mount": Requirement(
        "file systems to be mounted", can_mount, "sudo make test", of_the_machine=True
    ),
    "promtool": Requirement("promtool", PROMTOOL.exists, "tests/support/get_promtool.sh"),
    "mqtt_js": Requirement(
        "MQTT.js",
        lambda: bool(shutil.which("node")) and (CLIENTS / "node_modules/mqtt").exists(),
        "sudo apt-get install nodejs npm && tests/support/get_clients.sh",
    ),
    "aiomqtt": Requirement("aiomqtt", (CLIENTS / "aiomqtt").exists, "tests/support/get_clients.sh"),
    "azurite": Requirement(
        "Azurite",
        lambda: bool(shutil.which("node")) and AZURITE.exists(),
        "sudo apt-get install nodejs npm && tests/support/get_azurite.sh",
    ),
    "root": Requirement("root's permission", lambda: os.geteuid() == 0, "sudo make test"),
}


class LeftOut:
    """A pytest plugin: skips what cannot run here and keeps account of all that was skipped."""

    def __init__(self, config: pytest.Config) -> None:
        self._missing: dict[str, bool] = {}
        self._skipped: Counter[str] = Counter()
        for name, requirement in REQUIREMENTS.items():
            config.addinivalue_line("markers", f"{name}: needs {requirement.name}")
        config.addinivalue_line(
            "markers", "deep(target, variable): runs where this variable is set"
        )

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        marks = {mark.name: mark for mark in item.iter_markers()}
        if "deep" in marks:
            target, variable = marks["deep"].args
            if not os.environ.get(variable):
                pytest.skip(f"{LEFT_TO}; run: {target}")
        for name, requirement in REQUIREMENTS.items():
            if name in marks and self._is_missing(name):
                pytest.skip(requirement.reason)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and isinstance(report.longrepr, tuple):
            self._skipped[report.longrepr[2].removeprefix("Skipped: ")] += 1

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped and isinstance(report.longrepr, tuple):
            self._skipped[f"{report.nodeid}: {report.longrepr[2].removeprefix('Skipped: ')}"] += 1

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._missing_for_all():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for line in self.lines():
            terminalreporter.write_line(line)
        if self._missing_for_all():
            terminalreporter.write_line(
                f"TIDEGATE_TESTS={WANTED}: nothing may be left out that can be installed"
            )

    def lines(self) -> list[str]:
        """Return a sentence for each reason for which tests were left out."""
        return [_line(reason, count) for reason, count in sorted(self._skipped.items())]

    def _missing_for_all(self) -> bool:
        return WANTED in ("all", "strict") and any(
            not line.startswith((NOT_ALLOWED, LEFT_TO)) for line in self.lines()
        )

    def _is_missing(self, name: str) -> bool:
        if name not in self._missing:
            self._missing[name] = not REQUIREMENTS[name].is_there()
        return self._missing[name]


def _line(reason: str, count: int) -> str:
    tests = "1 test" if count == 1 else f"{count} tests"
    what, semicolon, more = reason.partition("; ")
    return f"{what}: {tests} left out{semicolon}{more}"
