import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest

pytestmark = pytest.mark.uncovered  # what is built is not run

ROOT = Path(__file__).parents[1]
PACKAGES = ("gateway", "tui", "pipeline", "tidegate_pipeline")
SHIPPED = {".py", ".pxd", ".sql", ".tcss", ".json", ".typed", ".service", ".conf", ".toml"}
FILES = (
    "pyproject.toml",
    "setup.py",
    "MANIFEST.in",
    "README.md",
    "LICENSE",
    "SECURITY.md",
    ".git_archival.txt",
)
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.so", "*.egg-info")


def build(project: Path, kind: str, cython: str = "off") -> subprocess.CompletedProcess[str]:
    """Call the build backend as pip does, in an environment that has what it requires."""
    return subprocess.run(
        [sys.executable, "-c", f"from setuptools import build_meta as b; b.build_{kind}('dist')"],
        cwd=project,
        env=os.environ | {"TIDEGATE_CYTHON": cython},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def built(project: Path, pattern: str) -> Path:
    (path,) = (project / "dist").glob(pattern)
    return path


def files(root: Path, folders: Iterable[str]) -> set[str]:
    return {
        str(path.relative_to(root))
        for folder in folders
        for path in (root / folder).rglob("*")
        if path.suffix in SHIPPED and "__pycache__" not in path.parts
    }


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a copy of what a release is built from."""
    copy = tmp_path_factory.mktemp("checkout")
    for folder in (*PACKAGES, "crashtest", "firmware", "systemd", "examples", "docs"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=LEFT_OUT)
    for name in FILES:
        shutil.copy(ROOT / name, copy)
    (copy / "gateway/build.txt").unlink(missing_ok=True)  # of this checkout
    return copy


@pytest.fixture(scope="module")
def sdist(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder that the sdist unpacks to."""
    made = build(checkout, "sdist")
    assert made.returncode == 0, made.stderr
    folder = tmp_path_factory.mktemp("sdist")
    with tarfile.open(built(checkout, "*.tar.gz")) as archive:
        if hasattr(tarfile, "data_filter"):  # Debian 12's Python 3.11.2 has none, and asks for none
            archive.extraction_filter = tarfile.data_filter
        archive.extractall(folder)
    (unpacked,) = folder.iterdir()
    return unpacked


def test_the_sdist_holds_every_source_file(checkout: Path, sdist: Path) -> None:
    folders = (*PACKAGES, "crashtest", "firmware", "systemd", "examples", "docs")
    shipped = files(checkout, folders)
    assert {"systemd/tidegate.service", "firmware/main.py"} <= shipped
    assert files(sdist, folders) == shipped


def test_a_wheel_built_from_the_sdist_holds_every_file_that_runs(
    checkout: Path, sdist: Path
) -> None:
    made = build(sdist, "wheel")
    assert made.returncode == 0, made.stderr
    wheel = built(sdist, "*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert not [name for name in names if name.startswith("crashtest/")]
    for package in PACKAGES:
        inside = {name for name in names if name.startswith(f"{package}/")}
        wanted = {name for name in files(checkout, [package]) if not name.endswith(".pxd")}
        assert inside == wanted | ({"gateway/build.txt"} if package == "gateway" else set())
    licenses = [name for name in names if name.endswith(".dist-info/licenses/LICENSE")]
    assert len(licenses) == 1
    assert "License-Expression: Apache-2.0\n" in metadata(wheel)
    shared = {name.partition("/data/share/tidegate/")[2] for name in names}
    shared = {name for name in shared if Path(name).suffix in SHIPPED}
    assert shared == files(checkout, ["firmware", "systemd"])
    pages = {name.partition("/data/share/tidegate/")[2] for name in names if name.endswith(".md")}
    rooms = {str(page.relative_to(ROOT)) for page in ROOT.glob("docs/*/*.md")}
    assert {page for page in pages if page.startswith("docs/")} == rooms


def metadata(wheel: Path) -> str:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return archive.read(name).decode()


def built_from(wheel: Path) -> list[str]:
    """Return the version of the metadata, and version and commit as the gateway reads them."""
    (line,) = (line for line in metadata(wheel).splitlines() if line.startswith("Version: "))
    with zipfile.ZipFile(wheel) as archive:
        return [line.removeprefix("Version: "), *archive.read("gateway/build.txt").decode().split()]


PYPROJECT = """
[project]
name = "sample"
dynamic = ["version"]
[tool.setuptools_scm]
fallback_version = "0.1.dev0"
[tool.setuptools.packages.find]
include = ["gateway*"]
[tool.setuptools.package-data]
gateway = ["build.txt"]
"""

MODULES = ("gateway/sample.py", "gateway/other/sample.py")
PY = "def twice(value: int) -> int:\n    return value * 2\n"
PXD = "cpdef long twice(long value)\n"
USE = """
import importlib, sys
import gateway.other.sample
assert "gateway.sample" not in sys.modules
import gateway.sample
for module in (gateway.sample, gateway.other.sample):
    assert sys.modules[module.__name__] is module, module.__name__
    assert module.__package__ == module.__spec__.parent == module.__name__.rpartition(".")[0]
    assert module.__file__ == sys.argv[1]
    assert module.twice(4) == 8
    assert type(module.twice).__name__ == "builtin_function_or_method"
assert gateway.compiled.__file__.endswith(".py")
try:
    gateway.sample.twice("four")
except TypeError as error:
    assert error.__traceback__.tb_next.tb_frame.f_code.co_filename == "gateway/sample.py"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Give a project of two modules of one name with the setup.py of this checkout."""
    (tmp_path / "gateway/other").mkdir(parents=True)
    for name in ("gateway/__init__.py", "gateway/compiled.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "gateway/other/__init__.py").touch()
    for name in MODULES:
        (tmp_path / name).write_text(PY)
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    shutil.copy(ROOT / "setup.py", tmp_path)
    return tmp_path


def declare(project: Path, pxd: str) -> None:
    for name in MODULES:
        (project / name).with_suffix(".pxd").write_text(pxd)


@pytest.mark.compiler
def test_modules_with_a_pxd_are_compiled_into_one_library(project: Path) -> None:
    declare(project, PXD)
    made = build(project, "wheel", "require")
    assert made.returncode == 0, made.stderr
    wheel = built(project, "*.whl")
    assert sys.implementation.cache_tag.replace("cpython-", "cp") in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(project / "installed")
    (library,) = (project / "installed").rglob("*.so")
    command = [sys.executable, "-W", "error", "-c", USE, str(library)]
    subprocess.run(command, cwd=project / "installed", check=True, timeout=60)


@pytest.mark.compiler
def test_only_what_has_changed_is_compiled_again(project: Path) -> None:
    declare(project, PXD)
    compile_in_place(project)
    objects = {path: path.stat().st_mtime_ns for path in project.rglob("*.o")}
    (library,) = (project / "gateway").glob("*.so")
    linked = library.stat().st_mtime_ns
    compile_in_place(project)
    assert library.stat().st_mtime_ns == linked
    (project / MODULES[0]).write_text(PY.replace("2", "3"))
    compile_in_place(project)
    changed = [path for path, before in objects.items() if path.stat().st_mtime_ns != before]
    assert [path.relative_to(path.parents[1]) for path in changed] == [Path("gateway/sample.o")]
    code = "import gateway.sample as a, gateway.other.sample as b; print(a.twice(4), b.twice(4))"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=True
    )
    assert run.stdout == "12 8\n"


def compile_in_place(project: Path) -> None:
    subprocess.run(
        [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"],
        cwd=project,
        env=os.environ | {"TIDEGATE_CYTHON": "require"},
        capture_output=True,
        timeout=100,
        check=True,
    )


class Repository:
    """A project's Git."""

    def __init__(self, project: Path) -> None:
        self._project = project
        self.git("init", "-q", "-b", "main")
        (project / ".gitignore").write_text("dist\n*.egg-info\nbuild\nbuild.txt\n")
        (project / ".gitattributes").write_text(".git_archival.txt export-subst\n")
        shutil.copy(ROOT / ".git_archival.txt", project)
        (project / "MANIFEST.in").write_text("include setup.py gateway/build.txt\n")

    def git(self, *arguments: str) -> str:
        options = ["-c", "user.name=a", "-c", "user.email=a@b"]
        done = subprocess.run(
            ["git", *options, *arguments],
            cwd=self._project,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def commit(self) -> str:
        self.git("add", ".")
        self.git("commit", "-q", "--allow-empty", "-m", "more")
        return self.git("rev-parse", "HEAD")


def unpack(archive: Path, folder: Path) -> Path:
    subprocess.run(["tar", "-xf", str(archive), "-C", str(folder)], check=True)
    (unpacked,) = folder.iterdir()
    return unpacked


def wheel_of(project: Path) -> list[str]:
    shutil.rmtree(project / "dist", ignore_errors=True)
    made = build(project, "wheel")
    assert made.returncode == 0, made.stderr
    return built_from(built(project, "*.whl"))


def test_the_version_comes_from_the_tag_and_the_commits_since(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert wheel_of(project) == ["0.1.dev0", "0.1.dev0"]  # files alone
    repository = Repository(project)
    commit = repository.commit()
    version, *reported = wheel_of(project)
    assert version.startswith(f"0.1.dev1+g{commit[:8]}")
    assert reported == [version, commit]
    repository.git("tag", "v1.2.0")
    assert wheel_of(project) == ["1.2.0", "1.2.0", commit]

    assert build(project, "sdist").returncode == 0
    unpacked = unpack(built(project, "*.tar.gz"), tmp_path_factory.mktemp("sdist"))
    assert wheel_of(unpacked) == ["1.2.0", "1.2.0", commit]

    archive = project / "archive.tar"
    repository.git("archive", "--prefix=whole/", "-o", str(archive), "HEAD")
    assert wheel_of(unpack(archive, tmp_path_factory.mktemp("archive"))) == [
        *("1.2.0", "1.2.0"),
        commit,
    ]
    archive.unlink()

    commit = repository.commit()
    assert wheel_of(project)[0].startswith(f"1.2.1.dev1+g{commit[:8]}")


def test_off_never_compiles(project: Path) -> None:
    declare(project, "this is no declaration\n")
    assert build(project, "wheel", "off").returncode == 0
    assert built(project, "*.whl").name == "sample-0.1.dev0-py3-none-any.whl"


@pytest.mark.parametrize("missing", ["cc", "Cython"])
def test_auto_is_plain_where_there_is_nothing_to_compile_with(
    project: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    if missing == "cc":
        monkeypatch.setenv("CC", str(project / "cc"))
    else:
        (project / "sitecustomize.py").write_text("import sys\nsys.modules['Cython'] = None\n")
        monkeypatch.setenv("PYTHONPATH", str(project))
    declare(project, PXD)
    assert build(project, "wheel", "require").returncode != 0
    made = build(project, "wheel", "auto")
    assert made.returncode == 0, made.stderr
    assert "not compiling" in made.stdout
    assert missing in made.stdout
    names = zipfile.ZipFile(built(project, "*.whl")).namelist()
    assert not [name for name in names if name.endswith(".so")]


@pytest.mark.compiler
def test_auto_fails_where_the_compiler_refuses_a_module(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = project / "cc"
    compiler.write_text('#!/bin/sh\ncase "$*" in *sample.c*) exit 1;; esac\nexec cc "$@"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    declare(project, PXD)
    assert build(project, "wheel", "auto").returncode != 0
    assert not list(project.glob("dist/*.whl"))


@pytest.mark.parametrize(
    ("pxd", "cython", "complaint"),
    [
        ("this is no declaration\n", "require", "this is no declaration"),
        ("this is no declaration\n", "", "this is no declaration"),
        ("cpdef long twice(long value, long by)\n", "auto", "twice"),
        (None, "require", "there is no .pxd file to compile"),
        (None, "yes", "TIDEGATE_CYTHON is 'yes': off, auto or require"),
    ],
)
def test_what_cannot_be_kept_stops_the_build(
    project: Path, pxd: str | None, cython: str, complaint: str
) -> None:
    if pxd is not None:
        declare(project, pxd)
    made = build(project, "wheel", cython)
    assert made.returncode != 0
    assert complaint in made.stdout + made.stderr
    assert not list(project.glob("dist/*.whl"))


def test_an_installation_is_compiled_again_after_a_source_has_changed(tmp_path: Path) -> None:
    """As after `git pull`: a library of older sources would be loaded instead of them."""
    (tmp_path / ".installed").touch()

    def make(*options: str) -> str:
        words = ["make", "--dry-run", *options, "install", f"VENV={tmp_path}"]
        return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout

    assert "tools/setup.sh" not in make()
    for source in ("gateway/mqtt/framing.py", "gateway/mqtt/framing.pxd", "setup.py"):
        assert "tools/setup.sh install" in make("--what-if", source)
