import sys
from pathlib import Path

import pytest

from tests.support.nodes.micropython import find
from tests.support.nodes.stand_in_board import StandInBoard
from tests.support.silent_client import Bench
from tests.support.waiting import until
from tui.screens import update
from tui.screens.update import Command, is_here, plugged_in, update_command

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
    assert "the board at /dev/null" in bench.screen()
    bench.press("K", "y")
    until(lambda: "it failed with status" in bench.screen(), more=bench.screen)


def test_a_node_elsewhere_is_not_updated(bench: Bench) -> None:
    bench.client.is_local = False
    assert not {"u", "F"} & {each.key for each in bench.session.actions()}
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


def test_ports_that_are_plugged_in(tmp_path: Path) -> None:
    (tmp_path / "serial/by-id").mkdir(parents=True)
    for name in ("ttyACM0", "ttyUSB1", "ttyS0"):
        (tmp_path / name).touch()
    link = tmp_path / "serial/by-id/usb-MicroPython_Board_e6614-if00"
    link.symlink_to(tmp_path / "ttyACM0")
    assert plugged_in(tmp_path) == [str(link), str(tmp_path / "ttyUSB1")]


def answer(bench: Bench, *texts: str) -> None:
    """Type each text in place of what a prompt has."""
    for each in texts:
        bench.press("ctrl+u")
        bench.type(each)


@pytest.mark.uncovered
@pytest.mark.micropython
def test_a_new_board_is_flashed_from_the_screen(
    bench: Bench, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real MicroPython behind a pseudo-terminal in place of the board."""
    folder = tmp_path_factory.mktemp("b")  # its path stands in one line of a dialogue
    monkeypatch.setenv("HOME", str(folder))
    program = find()
    assert program is not None
    board = StandInBoard(folder, program)
    settings = folder / "barn1.toml"
    bars: set[str] = set()

    def done() -> bool:
        text = bench.screen(120, 30)
        bars.update(each for each in text.splitlines() if "━" in each)
        return "the node has this version" in text or "it failed" in text

    try:
        bench.press("F")
        assert "port of the board: " in bench.screen(120, 30)
        answer(bench, board.port)
        assert "node.toml" in bench.screen(120, 30)
        answer(bench, str(settings), "pico", "simulated", "barn1", "")
        text = bench.screen(120, 30)
        assert f"Flash the board at {board.port}?" in text
        assert "barn1.toml" in text
        bench.press("y")
        until(done, more=lambda: bench.screen(120, 30))
        text = bench.screen(200, 40)
        assert "first reading of barn1" in text, text
        assert f'[[serial]] port = "{board.port}"' in text
        assert bars
        assert 'name = "barn1"' in settings.read_text()
    finally:
        board.close()


def test_a_board_or_image_that_is_not_there_is_named(bench: Bench, tmp_path: Path) -> None:
    bench.press("F")
    answer(bench, "/dev/nothing-is-here")
    assert "there is no /dev/nothing-is-here" in bench.screen(120, 30)
    settings = tmp_path / "node.toml"
    settings.touch()
    bench.press("F")
    answer(bench, "/dev/null", str(settings), "/no/image.uf2")
    assert "there is no /no/image.uf2" in bench.screen(120, 30)
    assert bench.session.question is None


def test_a_command_that_fails_ends_those_after_it() -> None:
    command = Command(words("3"), words("0"))
    until(lambda: command.status is not None)
    assert command.status == 3
    assert [each for each in command.lines if "version" in each] == ["version 2"]
