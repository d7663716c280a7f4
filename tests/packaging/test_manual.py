"""The manual page has every command, and groff takes it as it is."""

import runpy
import shutil
import subprocess
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "packaging/manual.py"
GROFF = shutil.which("groff")


@pytest.fixture(scope="module")
def page() -> str:
    text: str = runpy.run_path(str(PROGRAM))["page"]()
    return text


def test_each_command_has_a_section_with_its_options(page: str) -> None:
    for command in ("run", "status", "client kick", "queue list", "rule list", "events", "why"):
        assert f"\n.SS tidegate {command}\n" in page, command
    section = page.partition(".SS tidegate client kick\n")[2].partition(".SS")[0]
    assert "\\fIID\\fR" in section
    assert (
        "\\fB\\-\\-reason\\fR \\fITEXT\\fR\nreason for the client, the log and the events"
        in section
    )
    assert "==SUPPRESS==" not in page


@pytest.mark.skipif(GROFF is None, reason="groff is missing: apt-get install groff-base")
def test_groff_has_no_warning(page: str) -> None:
    command = [GROFF or "", "-man", "-Tutf8", "-ww", "-z"]
    done = subprocess.run(command, input=page, capture_output=True, text=True, check=True)
    assert done.stderr == ""
