from pathlib import Path

import pytest

from tui.prefs import MOST_GATEWAYS, Preferences, default_file


def test_what_is_kept_is_there_at_the_next_start(tmp_path: Path) -> None:
    file = tmp_path / "state" / "tui.json"
    first = Preferences(file)
    first.theme = "tide-light"
    first.seen = {f"g{number}": number for number in range(MOST_GATEWAYS + 2)}
    first.save()
    second = Preferences(file)
    assert second.theme == "tide-light"
    assert "g0" not in second.seen
    assert second.seen["g50"] == 50


@pytest.mark.parametrize(
    "text", ["", "[1]", "{", '{"seen": 5}', '{"seen": {"a": "b"}, "theme": 1}']
)
def test_a_file_that_cannot_be_used_is_left_alone(tmp_path: Path, text: str) -> None:
    file = tmp_path / "tui.json"
    file.write_text(text)
    assert Preferences(file).seen == {}
    assert file.read_text() == text


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    made = Preferences(tmp_path / "file" / "tui.json")
    made.save()
    made.save()
    Preferences(None).save()


def test_where_it_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/there")
    assert default_file() == Path("/there/tidegate/tui.json")
