"""What a shell offers after some words of a command line."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.processes.gateway_process import tidegate

BASH = """\
source "$1"
COMP_WORDS=("${@:2}")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_tidegate
printf '%s\\n' "${COMPREPLY[@]}"
"""


ZSH = """\
compdef() { :; }
_files() { :; }
_describe() { print -l -- ${(M)${offered%%:*}:#$words[CURRENT]*}; }
source "$1"
words=("${@[2,-1]}")
CURRENT=$#words
_tidegate
"""
"""Completion itself needs a terminal: what it would be given is printed."""

FISH = """\
source $argv[1]
complete --do-complete "$argv[2..-1]" | string replace -r '\\t.*' ''
true
"""

SHELLS = {
    "bash": ("bash", "-uc", BASH, "bash"),
    "zsh": ("zsh", "-fc", ZSH, "zsh"),
    "fish": ("fish", "--no-config", "-c", FISH),
}


@pytest.fixture(scope="module", params=SHELLS)
def asked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the command that says what a shell offers, but for the words."""
    if shutil.which(request.param) is None:
        pytest.skip(
            f"{request.param} is missing; get it with: sudo apt-get install {request.param}"
        )
    file = tmp_path_factory.mktemp("completion") / "tidegate"
    done = tidegate("completion", request.param)
    assert done.returncode == 0, done.stderr
    file.write_text(done.stdout)
    return [*SHELLS[request.param], str(file)]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        (["che"], {"check"}),
        (["c"], {"check", "channel", "client", "crashtest"}),
        (["client", "k"], {"kick"}),
        (["events", "--f"], {"--follow"}),
        (["uplink", ""], {"status", "pause", "resume", "rejected", "confirm"}),
        (["uplink", "--j"], {"--json"}),
        (["user", "a"], {"add"}),
        (["run", "--d"], {"--data", "--durability"}),
        (["--v"], {"--version"}),
        (["run", "--data", "/tmp", "--co"], {"--config"}),
        (["channel", "pause", "jobs", "--f"], {"--filter"}),
    ],
)
def test_words(asked: list[str], line: list[str], offered: set[str], tmp_path: Path) -> None:
    command = [*asked, "tidegate", *line]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    found = set(done.stdout.split())
    assert offered <= found, done.stderr
    assert {each for each in found if not each.startswith(line[-1])} == set()


def test_a_file_is_offered_where_no_word_fits(asked: list[str], tmp_path: Path) -> None:
    if asked[0] == "zsh":
        return  # its own `_files` offers them
    (tmp_path / "gateway.toml").touch()
    command = [*asked, "tidegate", "check", "gate"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "gateway.toml\n"
