"""A real systemd, booted on an overlay of this machine's root: nothing of it stays."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import paho.mqtt

ROOT = Path(__file__).parents[3]

SECONDS = 120.0
"""How long anything may take on a busy machine."""

BOOT = """\
set -e
mount -t tmpfs -o size=256m tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
cd "$1/root"
rm -rf etc/systemd/system/*.wants etc/fstab
: >etc/machine-id
touch etc/.updated var/.updated
cp -a "$2/." .
shift 2
exec systemd-nspawn --quiet --boot --directory=. --machine="tidegate-$$" --private-network \
    --register=no --keep-unit --console=pipe "$@" </dev/null
"""
"""In a mount namespace of its own, whose end unmounts everything.

Without the two files `.updated` systemd would make indexes anew that this machine's root has."""

UNSHARE = ("unshare", "--mount", "--propagation", "private")

PYTHON = Path("/opt/python")
LIBRARY = Path("/opt/tidegate")

METADATA = "Metadata-Version: 2.1\nName: tidegate\nVersion: {version}\n"

LAUNCHER = """\
#!/bin/sh
export PYTHONPATH={library} LD_LIBRARY_PATH={prefix}/lib
exec {prefix}/bin/{python} -c 'from gateway.cli.main import main; raise SystemExit(main())' "$@"
"""


class BootedSystemd:
    """One boot, from `start` to `stop`; what lies below `files` lies below its `/`."""

    def __init__(self, folder: Path) -> None:
        self.files = folder / "files"
        self.files.mkdir()
        self._overlay = folder / "overlay"
        self._overlay.mkdir()
        self._log = folder / "boot.log"
        self._options: list[str] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._leader = 0

    def install(self, source: Path, destination: str) -> None:
        """Have a file, or a folder, at an absolute path."""
        place = self.files / destination.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, place)
        else:
            shutil.copy(source, place)

    def install_tidegate(self) -> None:
        """Have the command `/usr/bin/tidegate` run this checkout's code.

        Python is brought along: the unit's sandbox hides what lies in somebody's home.
        """
        self.install(ROOT / "gateway", str(LIBRARY / "gateway"))
        self.install(Path(paho.mqtt.__file__).parents[1], str(LIBRARY / "paho"))
        # As installing would leave it; where this checkout keeps its own depends on how it is used.
        metadata = self.files / LIBRARY.relative_to("/") / "tidegate.dist-info" / "METADATA"
        metadata.parent.mkdir()
        metadata.write_text(METADATA.format(version=version("tidegate")))
        self._options.append(f"--bind-ro={sys.base_prefix}:{PYTHON}")
        python = f"python{sys.version_info.major}.{sys.version_info.minor}"
        launcher = self.files / "usr/bin/tidegate"
        launcher.parent.mkdir(parents=True)
        launcher.write_text(LAUNCHER.format(library=LIBRARY, prefix=PYTHON, python=python))
        launcher.chmod(0o755)

    def start(self) -> None:
        """Boot, and return when systemd takes commands."""
        script = ["sh", "-c", BOOT, "sh", str(self._overlay), str(self.files)]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*UNSHARE, *script, *self._options], stdout=log, stderr=log
            )
        self.until(self._find_leader, "systemd boots")
        self.until(self._runs, "systemd takes commands")

    def stop(self) -> None:
        """End everything in there at once: nothing of it stays, so nothing need be put away."""
        if self._process is None:
            return
        if self._leader:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._leader, signal.SIGKILL)  # with it end all processes in there
        else:
            self._process.terminate()
        try:
            self._process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(SECONDS)

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command in there as root."""
        assert self._leader, "not booted: without a leader this would run on the machine itself"
        enter = ["nsenter", f"--target={self._leader}", *("-m", "-u", "-i", "-n", "-p", "-C")]
        return subprocess.run(
            [*enter, *command], capture_output=True, text=True, timeout=SECONDS, check=False
        )

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Return once the condition holds; fail after SECONDS, saying `what`."""
        deadline = time.monotonic() + SECONDS
        while not condition():
            assert self._process is None or self._process.poll() is None, self._log.read_text()
            assert time.monotonic() < deadline, f"not in time: {what}\n{self._log.read_text()}"
            time.sleep(0.05)

    def _runs(self) -> bool:
        state = self.run("systemctl", "is-system-running").stdout.strip()
        return state in ("running", "degraded")  # a unit of this machine's may have failed in there

    def _find_leader(self) -> bool:
        """Find the process that is 1 in there: the container's child that is systemd."""
        assert self._process is not None
        number = self._process.pid
        for child in Path(f"/proc/{number}/task/{number}/children").read_text().split():
            with contextlib.suppress(OSError):  # one that has ended by now
                if Path(f"/proc/{child}/comm").read_text() == "systemd\n":
                    self._leader = int(child)
        return bool(self._leader)


def can_boot() -> bool:
    """Return whether a systemd boots here: tools and permissions are there."""
    if os.geteuid() or not all(map(shutil.which, ("systemd-nspawn", "unshare", "nsenter"))):
        return False
    with tempfile.TemporaryDirectory() as folder:
        systemd = BootedSystemd(Path(folder))
        try:
            systemd.start()
        except AssertionError:
            return False
        finally:
            systemd.stop()
    return True
