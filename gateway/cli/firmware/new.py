"""`tidegate firmware new`: writes an initial settings file."""

from collections.abc import Iterable
from pathlib import Path

from gateway.errors import TidegateError
from gateway.flashing.hardware import BOARDS, SENSORS
from gateway.flashing.new_settings import new_settings
from gateway.flashing.settings import node_name
from gateway.settings.did_you_mean import did_you_mean


def write_new(board: str, sensors: list[str], name: str, file: Path) -> int:
    """Write the file; raise TidegateError for an unknown word, and if the file exists."""
    _check("--board", board, BOARDS)
    for each in sensors:
        _check("--sensor", each, SENSORS)
    try:
        text = new_settings(board, sensors, node_name(name), str(file))
    except ValueError as error:
        raise TidegateError(f"--name {name!r}: {error}") from error
    try:
        with file.open("x", encoding="utf-8") as made:
            made.write(text)
    except FileExistsError as error:
        raise TidegateError(f"{file} exists: name another file, or remove it") from error
    except OSError as error:
        raise TidegateError(f"{file}: {error.strerror}") from error
    print(f"{file}: settings of {name}; copy them to the board: tidegate firmware flash {file}")
    return 0


def _check(option: str, word: str, known: Iterable[str]) -> None:
    if word not in known:
        like = did_you_mean(word, known)
        raise TidegateError(f"{option} {word!r}: one of {', '.join(known)}{like}")
