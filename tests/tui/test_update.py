import sys
from pathlib import Path

import pytest

from tests.support.silent_client import Bench
from tests.support.waiting import until
from tui.screens import update
from tui.screens.update import Command, is_here, update_command

SCRIPT = """
import sys, time
print("\\x1b[1mversion 2\\x1b[0m", flush=True)
for part in range(3):
    sys.stdout.write(f"\\rnode {part * 50} %")
    sys.stdout.flush()
if sys.argv[1] == "wait":
    sys.stdin.read(); time.sleep(60)
print()
sys.exit(int(sys.argv[1]))
"""


def words(argument: str) -> list[str]:
    return [sys.executable, "-c", SCRIPT, argument]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A gateway with a node at a port of this machine."""
    made = Bench()
    made.client.is_local = True
    row = {"kind": "serial", "name": "tty", "place": "/dev/null", "state": "open"}
    made.client.answers["bridges"] = {"rows": [row], "total": 1, "offset": 0}
    made.client.answers["readings"] = {"rows": [], "total": 0, "offset": 0}
    monkeypatch.setattr(update, "update_command", lambda _: words("0"))
    made.press("5")
    made.pass_time(12)
    made.screen()
    return made


def test_a_node_is_updated_after_a_question(bench: Bench) -> None:
    bench.press("u")
    assert "Update the node at /dev/null?" in bench.screen()
    bench.press("y")
    until(lambda: "the node has this version" in bench.screen(), more=bench.screen)
    assert "version 2" in bench.screen()
    assert "node 100 %" in bench.screen()
    bench.press("escape", "u")
    assert "Update the node at /dev/null?" in bench.screen()


def test_the_bar_while_it_runs(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(update, "update_command", lambda _: words("wait"))
    bench.press("u", "y")
    until(lambda: "node 100 %" in bench.screen(), more=bench.screen)
    bench.press("escape", "u")
    assert "update at /dev/null" in bench.screen()
    bench.press("K", "y")
    until(lambda: "it failed with status" in bench.screen(), more=bench.screen)


def test_a_node_elsewhere_is_not_updated(bench: Bench) -> None:
    bench.client.is_local = False
    assert "u" not in {each.key for each in bench.session.actions()}
    assert not is_here("tcp://10.0.0.7:4000")
    assert not is_here("/dev/nothing-is-here")


def test_the_bar_of_rich_is_shown_as_one_line() -> None:
    script = """
import time
from rich.progress import BarColumn, Progress, TextColumn
columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:.0f}"))
with Progress(*columns) as bar:
    task = bar.add_task("app.mpy", total=2)
    bar.advance(task, 1)
    time.sleep(600)
"""
    command = Command([sys.executable, "-c", script])
    until(lambda: command.progress.endswith(" 50"), more=lambda: repr(command.progress))
    assert command.progress.startswith("app.mpy ━")
    command.end()
    until(lambda: command.status is not None)


def test_an_update_that_fails() -> None:
    failed = Command(words("3"))
    until(lambda: failed.status is not None)
    assert failed.status == 3
    missing = Command(["/nothing/tidegate"])
    until(lambda: missing.status is not None)
    assert missing.lines == type(missing.lines)(["/nothing/tidegate: No such file or directory"])
    assert update_command("/dev/ttyX")[1:] == ["firmware", "update", "/dev/ttyX"]
    assert Path(update_command("/dev/ttyX")[0]).name == "tidegate"
