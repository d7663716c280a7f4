import importlib
from pathlib import Path
from types import SimpleNamespace

import pytest

from gateway.cli import own_gateway
from gateway.cli.main import main
from gateway.extras import how_to_install


@pytest.mark.parametrize("module", ["textual", "textual.app", "rich"])
def test_a_missing_extra_is_named(
    module: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_: str) -> None:
        raise ModuleNotFoundError(name=module)

    monkeypatch.setattr(importlib, "import_module", missing)
    assert main(["tui"]) == 2
    assert capsys.readouterr().err == (
        f"tidegate: the terminal UI needs its extra: {how_to_install('tui')}\n"
    )


@pytest.mark.parametrize("module", ["tui.nothing", None])
def test_a_mistake_of_ours_is_not_taken_for_a_missing_extra(
    module: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_: str) -> None:
        raise ModuleNotFoundError(name=module)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(ModuleNotFoundError):
        main(["tui"])


def test_the_screen_is_given_what_the_command_line_says(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[object, ...]] = []

    def run(*arguments: object, cert: object, key: object) -> int:
        given.append((*arguments, cert, key))
        return 3

    monkeypatch.setattr(importlib, "import_module", lambda _: SimpleNamespace(run=run))
    monkeypatch.setattr(own_gateway, "socket_url", lambda: None)  # gateways of other tests run
    assert main(["tui", "mqtt://barn", "--username", "anna"]) == 3
    assert main(["tui", "--cert", "a.pem", "--key", "a.key"]) == 3
    assert given == [
        ("mqtt://barn", "anna", None, None, None, None, None, None),
        ("mqtt://127.0.0.1:1883", None, None, None, None, None, Path("a.pem"), Path("a.key")),
    ]
