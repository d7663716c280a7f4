"""`tidegate tui`: the terminal UI, if its extra is installed."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

from gateway.errors import StartError
from gateway.extras import how_to_install


def tui(
    url: str,
    username: str | None,
    password_file: Path | None,
    ca_file: Path | None,
    record: Path | None = None,
    replay: Path | None = None,
    *,
    cert: Path | None = None,
    key: Path | None = None,
) -> int:
    """Run the terminal UI until it is closed; return its exit code."""
    application = _needs("tui.app", ("textual", "rich"), "tui", "the terminal UI")
    login = username, password_file, ca_file
    return int(application.run(url, *login, record, replay, cert=cert, key=key))


def serve(port: int, behind: str | None) -> int:
    """Show the terminal UI of this command line in browsers until it is stopped; return 0.

    `behind` is the address of a proxy: only that is answered.
    """
    server = _needs("tui.serve", ("textual_serve", "aiohttp"), "tui-serve", "--serve")
    return int(server.run(sys.argv, port, behind))


def _needs(module: str, packages: tuple[str, ...], extra: str, what: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith(packages):
            raise
        raise StartError(f"{what} needs its extra: {how_to_install(extra)}") from error
