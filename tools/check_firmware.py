"""Check the types of the node's firmware against the modules that boards have.

    python tools/check_firmware.py

The stubs of MicroPython for RP2 boards and for ESP32 are kept in .venv/stubs/<board>, apart from
each other and from Python's own, and fetched when another version is asked for.
"""

import subprocess
import sys
from pathlib import Path

MICROPYTHON = "1.25"
"""The version that docs/start/first-node.md names."""

BOARDS = ("rp2", "esp32")
ROOT = Path(__file__).parents[1]
STUBS = Path(sys.prefix) / "stubs"
CHECKED = ("firmware/main.py", "firmware/launcher.py", "firmware/node")
CONFIGURATION = """\
[mypy]
strict = true
warn_unused_ignores = false
explicit_package_bases = true
custom_typeshed_dir = {stubs}
mypy_path = {stubs}:{root}/firmware
untyped_calls_exclude = dht, ds18x20, onewire, umqtt

[mypy-_mpy_shed.*,cryptolib,micropython,vfs,machine,_typeshed.*]
ignore_errors = true

[mypy-esp32,tls,umqtt.*]
ignore_missing_imports = true

[mypy-bluetooth,network,socket]
ignore_errors = true
ignore_missing_imports = true
"""


def main() -> int:
    """Return 0 if mypy finds no mistake on any board."""
    return max(check(board) for board in BOARDS)


def check(board: str) -> int:
    """Return mypy's exit status for one kind of board."""
    stubs = fetch(board)
    configuration = stubs.with_suffix(".ini")
    configuration.write_text(CONFIGURATION.format(stubs=stubs, root=ROOT))
    command = [sys.executable, "-m", "mypy", "--config-file", str(configuration)]
    print(f"{board}: ", end="", flush=True)
    cache = ["--cache-dir", str(ROOT / ".mypy_cache" / board)]
    return subprocess.run([*command, *cache, *CHECKED], cwd=ROOT, check=False).returncode


def fetch(board: str) -> Path:
    """Return the folder with a board's stubs."""
    folder, wanted = STUBS / board, f"micropython-{board}-stubs=={MICROPYTHON}.*"
    done = folder / "fetched"
    if not done.exists() or done.read_text() != wanted:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--upgrade", "--target", str(folder), wanted], check=True)
        done.write_text(wanted)
    return folder


if __name__ == "__main__":
    raise SystemExit(main())
