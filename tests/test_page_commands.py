"""The commands of the pages: each is one, and a block of `console` prints what the page shows."""

import argparse
import contextlib
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from gateway.cli.commands import parser_of_all
from gateway.errors import CANNOT_START
from tests.support.ports import free_port
from tests.support.processes.gateway_process import COMMAND, GatewayProcess, tidegate
from tests.support.table import table
from tests.support.waiting import SECONDS, listens, until
from tests.test_commands_page import choices, pipeline

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*/*.md"))]
BLOCK = re.compile(r"^```(\w+)(?: ([\w.-]+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS = re.compile(r"(?:^ {4}|^|`)(?:\$ |sudo )*(tidegate(?:-pipeline)? [^`\n]+)", re.MULTILINE)

CONFIG = """\
[gateway]
id = "barn"

[broker]
remembered_topics = 1000

[history]
keep = "24h"

[[channel]]
name = "jobs"
filter = "jobs/#"

[uplink]
directory = "landing"

[[uplink.rule]]
topic = "sensors/#"
"""
"""What the gateway of a page has, if the page shows no `gateway.toml` of its own."""

PLACES = {
    "/etc/tidegate": "{folder}",
    "/var/lib/tidegate": "{folder}/var",
    "/root/": "{folder}/root/",
    "/etc/mosquitto": "{folder}/mosquitto",
    "/mnt/backup": "{folder}/mnt",
    "barn.lan": "127.0.0.1",
    "1883": "{port}",
    "1884": "{fleet}",
    "9234": "{metrics}",
}
"""What stands on a page, and where it is in the sandbox."""

NOT_HERE = frozenset(
    {"apt-get", "apt", "journalctl", "dmesg", "df", "podman", "docker", "make", "git", "promtool"}
    | {"systemctl", "timedatectl", "usermod"}
)
"""Programs that a sandbox has not: they are the system's."""

JOINS = {"|", "||", "&&", ";", ">", ">>", "<", "&"}

OFFLINE = re.compile(
    r"(?:\w+=\S+ |sudo )*tidegate (?:user|check|docs|import|where|completion)\b"
    r"|tidegate-pipeline |python3 |echo |mosquitto "
)
"""Commands that need no gateway."""

QUERY = re.compile(r"tidegate (?:status|why|events|(?:uplink|bridges) status|\w+ (?:list|show))\b")
"""Commands that change nothing."""

ENDLESS = re.compile(r"tidegate (?:subscribe|top|rule try)\b|mosquitto_sub (?!.*-[CW])")
"""Commands that run until they are interrupted."""

LISTENING = "timeout --preserve-status --signal INT 2"

GIVEN = "secret\n"
"""What commands read from standard input, such as a password."""

SAID = re.compile(r"^(?:Client|Subscribed) .*\n", re.MULTILINE)
"""What a subscriber says of itself."""


@dataclass
class Step:
    """A command of a page, and what it prints there."""

    command: str
    output: str


def steps(text: str) -> Iterator[Step]:
    command, shown = "", list[str]()
    for line in [*text.splitlines(), "$ "]:
        if line.startswith("$ ") and not command.endswith("\\"):
            if command:
                yield Step(command, "\n".join(shown).strip("\n"))
            command, shown = line[2:], []
        elif command.endswith("\\"):
            command += f"\n{line}"
        else:
            shown.append(line)


class Sandbox:
    """A gateway, which starts when a command needs it, and a shell beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.gateway = GatewayProcess(folder, CONFIG, "--data", "var")
        self._fleet, self._metrics = free_port(), free_port()
        self._client: paho.Client | None = None
        self._stopped = False
        self._jobs: list[subprocess.Popen[bytes]] = []
        self._subscribers: dict[Path, int] = {}
        """The output of each, and how much of it was compared."""
        (folder / "users").touch()
        for name in ("root", "mnt"):
            (folder / name).mkdir()
        (folder / "mosquitto").symlink_to(folder)
        (folder / "firmware").symlink_to(ROOT / "firmware")
        (folder / "bin").mkdir()
        (folder / "bin/tidegate").symlink_to(COMMAND)
        (folder / "bin/tidegate-pipeline").symlink_to(COMMAND.with_name("tidegate-pipeline"))
        for name, program in (("sudo", ""), ("python3", sys.executable)):
            (folder / "bin" / name).write_text(f'#!/bin/sh\nexec {program} "$@"\n')
            (folder / "bin" / name).chmod(0o755)
        (folder / "spark.toml").write_text('java_cache = "none"\n')
        self._path = f"{folder}/bin:/usr/bin:/bin:/usr/sbin"

    def start(self) -> None:
        """Start the gateway, unless it runs; that of CONFIG has messages of a client `pump-7`."""
        if self.gateway.process is not None:
            return
        self.gateway.start()
        if (self.folder / "gateway.toml").read_text(encoding="utf-8") != CONFIG:
            return
        self._client = paho.Client(CallbackAPIVersion.VERSION2, client_id="pump-7")
        self._client.connect("127.0.0.1", self.gateway.port)
        self._client.loop_start()
        for value in (21, 22, 24, 23, 22):
            sent = self._client.publish("sensors/boiler/temperature", f'{{"value":{value}}}', qos=1)
            sent.wait_for_publish(SECONDS)

    def stop(self) -> None:
        if self._client is not None:
            self._client.disconnect()
            self._client.loop_stop()
        if self.gateway.process is not None:
            self.gateway.stop()
        while self._jobs:
            self._end_job()

    def here(self, text: str) -> str:
        return replace(text, self._places())

    def there(self, text: str) -> str:
        return replace(text, {place: shown for shown, place in self._places().items()})

    def _places(self) -> dict[str, str]:
        here = {
            "folder": self.folder,
            "port": self.gateway.port,
            "fleet": self._fleet,
            "metrics": self._metrics,
        }
        return {shown: place.format(**here) for shown, place in PLACES.items()}

    def run(self, step: Step) -> None:
        words = split(step.command.replace("sudo ", ""))
        if words[0] in NOT_HERE:
            if words[0] == "systemctl" and words[-1] == "tidegate":
                self._systemctl(words[1])
        elif words == ["kill", "%1"]:
            self._end_job()
        elif words[:2] == ["tidegate", "run"]:
            self.start()
        else:
            if not self._stopped and not OFFLINE.match(step.command):
                self.start()
            self.judge(step, words)

    def _do(self, command: str, words: list[str]) -> tuple[str, int]:
        """Run it to its end, or beside what follows; return what it prints, and its status."""
        if words[0].startswith("mosquitto_") and "-p" not in words:
            command = command.replace(words[0], f"{words[0]} -p {self.gateway.port}", 1)
        if words[-1] == "&":
            self._begin_job(self.here(command).rpartition("&")[0])
            return "", 0
        alone = words[0] == "tidegate" and words[-1] not in JOINS
        missing = defaults(words[1:]) if alone else []
        if alone and "$(" not in command and not ENDLESS.match(command):
            words = [self.here(word) for word in [*words, *missing]]
            done = tidegate(*words[1:], folder=self.folder, stdin=GIVEN)
            if words[1] == "user" and self.gateway.process is not None:  # noticed within a second
                tidegate("reload", folder=self.folder)
        else:
            command = self.here(" ".join([command.partition("  #")[0], *missing]))
            if ENDLESS.match(command):
                command = f"{LISTENING} {command}"
            done = subprocess.run(
                ["/bin/bash", "-c", command],
                cwd=self.folder,
                env={
                    "PATH": self._path,
                    "HOME": str(self.folder),
                    "TIDEGATE_PIPELINE_CONFIG": str(self.folder / "spark.toml"),
                },
                input=GIVEN,
                capture_output=True,
                text=True,
                timeout=SECONDS * (4 if words[0] == "tidegate-pipeline" else 1),
                check=False,
            )
        return self.there(done.stdout + done.stderr), done.returncode

    def _begin_job(self, command: str) -> None:
        output = self.folder / f"output{len(self._subscribers)}-{len(self._jobs)}"
        if command.startswith("mosquitto_sub "):
            command = f"stdbuf -oL {command} -d"  # which says when it has subscribed
        with output.open("wb") as file:
            words = ["/bin/bash", "-c", f"exec {command}"]
            job = subprocess.Popen(
                words, cwd=self.folder, stdout=file, stderr=file, env={"PATH": self._path}
            )
        self._jobs.append(job)
        if "mosquitto_sub " in command:
            self._subscribers[output] = 0
            until(lambda: "Subscribed (" in output.read_text(), command, output.read_text)
        elif command.startswith("mosquitto "):
            until(lambda: listens(self._fleet), command, output.read_text)

    def _end_job(self) -> None:
        job = self._jobs.pop(0)
        job.terminate()
        job.wait(SECONDS)

    def _systemctl(self, what: str) -> None:
        if what in ("stop", "restart", "disable"):
            self.stop()
        self._stopped = what in ("stop", "disable")
        if what in ("start", "restart"):
            self.start()

    def judge(self, step: Step, words: list[str]) -> None:
        """Run it, and compare with the page, if it shows output; subscribers' comes behind it.

        A query is repeated until the gateway has come so far.
        """
        printed, status = self._do(step.command, words)
        if not step.output:
            ended = (0, 130) if ENDLESS.match(step.command) else (0,)
            assert status in ended, f"$ {step.command}\n{printed}"
            return
        refused = words[0] == "tidegate" and status == CANNOT_START
        assert not refused or "tidegate: " in step.output, f"$ {step.command}\n{printed}"
        wanted, shown = re.compile(pattern(self.there(self.here(step.output)))), ""

        def fits() -> object:
            nonlocal printed, shown
            shown = "".join([printed, *self._new()]).strip("\n")
            fit = wanted.fullmatch(shown)
            if not fit and QUERY.match(step.command):
                printed, _ = self._do(step.command, words)
            return fit

        until(fits, f"$ {step.command}\n{step.output}", lambda: f"it is\n{shown}")
        for file in self._subscribers:
            self._subscribers[file] = len(file.read_text())

    def _new(self) -> Iterator[str]:
        for file, seen in self._subscribers.items():
            yield self.there(SAID.sub("", file.read_text()[seen:]))


def replace(text: str, places: dict[str, str]) -> str:
    """Return the text with each place in the other's stead; the longer goes before the shorter."""
    longest = sorted(places, key=len, reverse=True)
    return re.sub("|".join(map(re.escape, longest)), lambda found: places[found[0]], text)


def defaults(words: list[str]) -> list[str]:
    """Return options for files that a command takes from the installed gateway by default."""
    parser: argparse.ArgumentParser = parser_of_all()
    for word in words:
        parser = choices(parser).get(word, parser)
    given = {f"--{name}": str(parser.get_default(name)) for name in ("config", "data")}
    return [
        each
        for option, place in given.items()
        if place.startswith(tuple(PLACES)) and option not in words
        for each in (option, place)
    ]


def pattern(shown: str) -> str:
    """Return what matches the output: any number for a number, any text for …, lines for a …."""
    lines = []
    for line in shown.splitlines():
        if line.strip() == "…":
            lines.append(r"(?:.*(?:\n|$))*?")
            continue
        text = re.escape(re.sub(r"\s+", " ", line)).replace("…", ".*").replace(r"\ ", r"\s+")
        lines.append(re.sub(r"\d+(?:(?:,|\\[.:-])\d+)*", r"[\\d.,:-]+", text) + r"\s*?(?:\n|$)")
    return "".join(lines)


@table(
    ("shown", "printed", "fits"),
    [
        ("free 79.8 GB", "free  5 GB\n", True),
        ("free 79.8 GB", "free much GB", False),
        ("on …, well", "on barn, well", True),
        ("on …, well", "on barn, bad", False),
        ("…\nlast", "one\ntwo\nlast", True),
        ("first\n…", "first", True),
        ("first\nlast", "first\nmore\nlast", False),
        ("a.b (c)", "axb (c)", False),
    ],
)
def test_what_fits(shown: str, printed: str, fits: bool) -> None:
    assert bool(re.fullmatch(pattern(shown), printed)) is fits


def needs(page: Path) -> list[pytest.MarkDecorator]:
    """Return the marks of what the commands of a page need beside Mosquitto."""
    curl = any(step.command.startswith("curl ") for step in console(page))
    return [pytest.mark.spark] * (page.stem == "pipeline") + [pytest.mark.curl] * curl


def console(page: Path) -> list[Step]:
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [step for language, _, text in blocks if language == "console" for step in steps(text)]


@pytest.mark.uncovered
@pytest.mark.slow
@pytest.mark.mosquitto
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=needs(page)) for page in PAGES if console(page)],
    ids=lambda page: page.stem,
)
def test_a_page_shows_what_is_printed(page: Path, tmp_path: Path) -> None:
    folder = tmp_path / page.stem
    folder.mkdir()
    sandbox = Sandbox(folder)
    files = [block for block in BLOCK.findall(page.read_text(encoding="utf-8")) if block[1]]
    for _, name, text in files:
        (folder / name).write_text(sandbox.here(text), encoding="utf-8")
    try:
        for step in console(page):
            sandbox.run(step)
    finally:
        sandbox.stop()


def split(command: str) -> list[str]:
    """Return the words of the first command of a line; what joins it with others is the last."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = list[str]()
    for word in lexer:
        words.append(word)
        if word in JOINS:
            break
    return words


def written(page: Path) -> Iterator[list[str]]:
    """Yield the commands of the page that are whole: without places to fill in."""
    for command in COMMANDS.findall(page.read_text(encoding="utf-8")):
        if "…" in command or "\\" in command:
            continue
        text = re.sub(r" \[[^\]]*\]", "", command)
        words = split(re.sub(r"<[\w -]+>", "1", text))
        if len(words) > 1 and words[1].islower():
            yield words[:-1] if words[-1] in JOINS else words


@table("page", PAGES, ids=lambda page: page.stem)
def test_each_command_is_one(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parsers: dict[str, argparse.ArgumentParser] = {
        "tidegate": parser_of_all(),
        "tidegate-pipeline": pipeline(),
    }
    for program, *words in written(page):
        with contextlib.suppress(SystemExit):
            _, rest = parsers[program].parse_known_args(words)
            assert not [word for word in rest if word.startswith("-")], f"{program} {words}"
        fault = capsys.readouterr().err
        partial = "required" in fault or any(word.isupper() for word in words)
        assert not fault or partial, f"{program} {words}: {fault}"
