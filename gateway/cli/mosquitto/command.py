"""`tidegate import mosquitto.conf`: migrates from Mosquitto."""

import os
import sys
from pathlib import Path

from gateway.cli.mosquitto.conversion import Conversion
from gateway.cli.mosquitto.toml import text_of, told
from gateway.errors import TidegateError


def convert(file: Path, output: Path | None) -> int:
    """Write the configuration to `output`, or print it, and report lines without an equivalent."""
    conversion = Conversion(file)
    folder = None if output is None else output.parent.absolute()
    for _, table in conversion.uplinks:
        if folder is not None and "password_file" in table:
            table["password_file"] = str(folder / table["password_file"])
    text = text_of(conversion, str(file))
    if output is None or folder is None:
        print(text, end="")
        for name in conversion.secrets:
            print(f"{name}: write the password there, and nothing else", file=sys.stderr)
    else:
        _write(output, text, 0o644)
        for name, secret in conversion.secrets.items():
            _write(folder / name, secret, 0o600)
    for line in told(conversion):
        print(line, file=sys.stderr)
    return 0 if output is None else _check(output)


def _write(file: Path, text: str, mode: int) -> None:
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with open(descriptor, "w", encoding="utf-8") as opened:  # noqa: PTH123 - by its descriptor
            opened.write(text)
    except FileExistsError as error:
        raise TidegateError(f"{file}: is there already; it is not overwritten") from error
    except OSError as error:
        raise TidegateError(f"{file}: {error.strerror}") from error
    print(f"{file}: written", file=sys.stderr)


def _check(file: Path) -> int:
    """Check the file as `tidegate check` does; raise TidegateError."""
    from gateway.app.checks.check import check_configuration
    from gateway.config.load import read

    check_configuration(*read(file))
    print(f"{file}: ok", file=sys.stderr)
    return 0
