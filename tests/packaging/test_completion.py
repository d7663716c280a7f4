"""What bash offers after some words of a command line."""

import runpy
import subprocess
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "packaging/completion.py"

ASK = """\
source "$1"
COMP_WORDS=("${@:2}")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_tidegate
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("completion") / "tidegate"
    file.write_text(runpy.run_path(str(PROGRAM))["script"]())
    return file


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
def test_words(script: Path, line: list[str], offered: set[str]) -> None:
    command = ["bash", "-uc", ASK, "bash", str(script), "tidegate", *line]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = set(done.stdout.split())
    assert offered <= found, done.stderr
    assert {each for each in found if not each.startswith(line[-1])} == set()


def test_a_file_is_offered_where_no_word_fits(script: Path, tmp_path: Path) -> None:
    (tmp_path / "gateway.toml").touch()
    command = ["bash", "-uc", ASK, "bash", str(script), "tidegate", "check", "gate"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "gateway.toml\n"
