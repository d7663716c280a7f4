"""`tidegate tui`: the terminal UI, if its extra is installed."""

import importlib
from pathlib import Path

from gateway.errors import StartError
from gateway.extras import how_to_install


def tui(url: str, username: str | None, password_file: Path | None, ca_file: Path | None) -> int:
    """Run the terminal UI until it is closed; return its exit code."""
    try:
        application = importlib.import_module("tui.app")
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith(("textual", "rich")):
            raise
        raise StartError(f"the terminal UI needs its extra: {how_to_install('tui')}") from error
    return int(application.run(url, username, password_file, ca_file))
