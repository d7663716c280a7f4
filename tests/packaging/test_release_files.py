"""The files of a release, built and used as somebody would use them; `make test-packages`.

TIDEGATE_PACKAGES is a folder that has them, made by packaging/build.sh.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes.booted_systemd import BootedSystemd

FOLDER = os.environ.get("TIDEGATE_PACKAGES", "")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.deep("make test-packages", "TIDEGATE_PACKAGES"),
    pytest.mark.timeout(900),
]

ROOT = Path(__file__).parents[2]
UNIT = "tidegate.service"
PYTHON = "/usr/lib/tidegate/bin/python"
PUBLISH = "import paho.mqtt.publish as p; p.single('kept/it', 'kept', qos=1, retain=True)"
READ = "import paho.mqtt.subscribe as s; print(s.simple('kept/#').payload.decode())"


def found(pattern: str) -> Path:
    """Return the newest file of the release that has this name."""
    files = sorted(Path(FOLDER).glob(pattern), key=lambda file: file.stat().st_mtime)
    assert files, f"{FOLDER} has no {pattern}"
    return files[-1]


def build(dist: Path, *what: str, tree: Path = ROOT) -> None:
    environment = {**os.environ, "PYTHON": sys.executable, "DIST": str(dist)}
    subprocess.run([tree / "packaging/build.sh", *what], cwd=tree, env=environment, check=True)


def digests(folder: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}


def test_two_builds_of_a_commit_are_the_same_bytes(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for dist in (first, second):
        build(dist, "wheel")
    made = digests(first)
    assert sorted(name.rpartition(".")[2] for name in made) == ["gz", "json", "whl"]
    assert made == digests(second)


def test_two_debian_packages_of_a_wheel_are_the_same_bytes(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for dist in (first, second):
        dist.mkdir()
        shutil.copy(found("tidegate-*-none-any.whl"), dist)
        build(dist, "deb")
    assert digests(first) == digests(second)


def test_a_debian_package_has_nothing_that_is_not_committed(tmp_path: Path) -> None:
    tree, dist, inside = tmp_path / "tree", tmp_path / "dist", tmp_path / "inside"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(tree)], check=True)
    changed = {
        "systemd/tidegate.service": "usr/lib/systemd/system/tidegate.service",
        "examples/gateway.toml": "etc/tidegate/gateway.toml",
        "CHANGELOG.md": "usr/share/doc/tidegate/CHANGELOG.md",
        "packaging/deb/postinst": "DEBIAN/postinst",
    }
    for name in changed:
        with (tree / name).open("a") as file:
            file.write("# not committed\n")
    main = tree / "gateway/cli/commands.py"
    main.write_text(main.read_text().replace('"doctor"', '"not-committed"'))
    dist.mkdir()
    shutil.copy(found("tidegate-*-none-any.whl"), dist)
    build(dist, "deb", tree=tree)
    (package,) = dist.glob("*.deb")
    subprocess.run(["dpkg-deb", "-R", str(package), str(inside)], check=True)
    for name in (*changed.values(), "usr/share/bash-completion/completions/tidegate"):
        text = (inside / name).read_text()
        assert "not committed" not in text, name
        assert "not-committed" not in text, name


def test_pipx_installs_the_wheel(tmp_path: Path) -> None:
    """As docs/start/install.md says, with what the wheel needs from the registry."""
    own = tmp_path / "pipx"
    subprocess.run([sys.executable, "-m", "venv", str(own)], check=True)
    subprocess.run([own / "bin/pip", "install", "--quiet", "pipx"], check=True)
    wheel = found("tidegate-*-none-any.whl")
    shutil.copy(wheel, tmp_path)
    places = {"PIPX_HOME": str(tmp_path / "home"), "PIPX_BIN_DIR": str(tmp_path / "bin")}
    command = [str(own / "bin/pipx"), "install", f"./{wheel.name}[serial,tui,websocket]"]
    subprocess.run(command, cwd=tmp_path, env={**os.environ, **places}, check=True)
    output = subprocess.run(
        [tmp_path / "bin/tidegate", "--version"], capture_output=True, text=True, check=True
    )
    assert output.stdout.startswith(f"tidegate {wheel.name.split('-')[1].partition('+')[0]}")


def test_a_wheel_is_installed_without_an_index(tmp_path: Path) -> None:
    """As pipx does it: an environment of its own, and the file; what it needs is at hand here."""
    wheel = found("tidegate-*-none-any.whl")
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "own")], check=True)
    python = tmp_path / "own/bin/python"
    (site,) = (tmp_path / "own/lib").glob("python*/site-packages")
    (site / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    options = ["--quiet", "--no-index", "--force-reinstall", "--no-deps"]
    subprocess.run([python, "-m", "pip", "install", *options, str(wheel)], check=True)
    output = subprocess.check_output([python.with_name("tidegate"), "--version"], text=True)
    version = wheel.name.split("-")[1]
    assert output.startswith(f"tidegate {version} (plain, commit ")
    config = tmp_path / "gateway.toml"
    config.write_text('[gateway]\nid = "barn"\n')
    output = subprocess.check_output([python.with_name("tidegate"), "check", config], text=True)
    assert output.endswith(": ok\n")


class Board:
    """A system that has booted, with packages to install."""

    def __init__(self, systemd: BootedSystemd) -> None:
        self.systemd = systemd

    def do(self, *command: str) -> str:
        done = self.systemd.run(*command)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def dpkg(self, *arguments: str) -> str:
        options = ("--force-confdef", "--force-confold")
        return self.do("env", "DEBIAN_FRONTEND=noninteractive", "dpkg", *options, *arguments)

    def state(self) -> str:
        return self.systemd.run("systemctl", "is-active", UNIT).stdout.strip()

    def until_active(self) -> None:
        def is_active() -> bool:
            state = self.state()
            assert state in ("active", "activating"), self.do("journalctl", "--no-pager", "-n50")
            return state == "active"

        self.systemd.until(is_active, "it is active")

    def has(self, path: str) -> bool:
        return self.systemd.run("test", "-e", path).returncode == 0

    def read(self) -> str:
        """Return the retained message, once the gateway that was started anew listens."""
        self.until_active()
        return self.do("timeout", "30", PYTHON, "-c", READ)


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    folder = tmp_path_factory.mktemp("booted")
    package = found(f"tidegate_*_{debian_architecture()}.deb")
    systemd = BootedSystemd(folder)
    systemd.install(package, "/packages/this.deb")
    systemd.install(later(package, folder), "/packages/later.deb")
    try:
        systemd.start()
        systemd.run("rm", "-f", "/usr/sbin/policy-rc.d")  # of a container, where none may start
        yield Board(systemd)
    finally:
        systemd.stop()


def debian_architecture() -> str:
    return subprocess.check_output(["dpkg", "--print-architecture"], text=True).strip()


def later(package: Path, folder: Path) -> Path:
    """Return the same package with a higher version and another default configuration."""
    tree, made = folder / "tree", folder / "later.deb"
    subprocess.run(["dpkg-deb", "-R", str(package), str(tree)], check=True)
    control = tree / "DEBIAN/control"
    control.write_text(control.read_text().replace("Version: ", "Version: 9+"))
    with (tree / "etc/tidegate/gateway.toml").open("a") as config:
        config.write("# later\n")
    command = ["dpkg-deb", "--root-owner-group", "-Znone", "--build", str(tree), str(made)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(tree)
    return made


@pytest.mark.nspawn
def test_install_upgrade_downgrade_remove_and_purge(board: Board) -> None:
    board.dpkg("--install", "/packages/this.deb")
    board.until_active()
    assert board.do("systemctl", "is-enabled", UNIT) == "enabled"
    assert board.do("tidegate", "--version").startswith("tidegate 0.")
    assert board.has("/usr/share/bash-completion/completions/tidegate")
    assert board.has("/usr/share/zsh/vendor-completions/_tidegate")
    assert board.has("/usr/share/fish/vendor_completions.d/tidegate.fish")
    assert board.has("/usr/share/man/man1/tidegate.1.gz")
    assert board.has("/usr/lib/udev/rules.d/60-tidegate.rules")
    config = "/etc/tidegate/gateway.toml"
    assert board.do("stat", "-c%U:%G:%a", config) == "root:tidegate:640"
    assert board.do("dpkg", "--verify", "tidegate") == ""
    board.do(PYTHON, "-c", PUBLISH)
    board.do("sed", "-i", 's/^id = .*/id = "mine"/', config)

    first = board.do("systemctl", "show", "-PMainPID", UNIT)
    board.do("systemctl", "restart", UNIT)
    board.until_active()
    second = board.do("systemctl", "show", "-PMainPID", UNIT)
    assert second != first
    first = second
    board.do("sh", "-c", f'printf \'[[channel]]\nname = "c"\nfilter = "c/#"\n\' >>{config}')
    board.do("systemctl", "reload", UNIT)
    board.do("cp", config, "/tmp/good")
    board.do("sh", "-c", f"echo '[broken' >>{config}")
    assert board.systemd.run("systemctl", "reload", UNIT).returncode == 1
    assert "reload refused" in board.do("systemctl", "status", UNIT)
    board.do("cp", "/tmp/good", config)
    board.do("systemctl", "reload", UNIT)
    assert "refused" not in board.do("systemctl", "show", "-PStatusText", UNIT)
    assert board.do("systemctl", "show", "-PMainPID", UNIT) == first
    board.dpkg("--install", "/packages/later.deb")
    assert board.read() == "kept"
    assert board.do("systemctl", "show", "-PMainPID", UNIT) != first
    assert 'id = "mine"' in board.do("cat", config)
    assert "# later" in board.do("cat", f"{config}.dpkg-dist")
    assert board.do("stat", "-c%U:%G:%a", config) == "root:tidegate:640"
    assert "gateway mine listens" in board.do("systemctl", "show", "-PStatusText", UNIT)

    board.dpkg("--install", "/packages/this.deb")
    assert board.read() == "kept"

    board.do("systemctl", "disable", "--now", UNIT)
    board.dpkg("--install", "/packages/later.deb")  # what somebody has stopped stays so
    assert board.state() == "inactive"
    assert board.systemd.run("systemctl", "is-enabled", UNIT).stdout.strip() == "disabled"
    board.do("systemctl", "enable", "--now", UNIT)

    board.dpkg("--remove", "tidegate")
    assert board.state() == "inactive"
    assert not board.has("/usr/bin/tidegate")
    assert not board.has("/usr/lib/tidegate")
    assert board.has(config)
    assert board.has("/var/lib/tidegate/tidegate.db")
    board.dpkg("--install", "/packages/this.deb")
    assert board.read() == "kept"

    board.dpkg("--purge", "tidegate")
    for path in ("/etc/tidegate", "/var/lib/tidegate", "/usr/lib/tidegate", "/usr/bin/tidegate"):
        assert not board.has(path), path
