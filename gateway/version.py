"""The version of this Tidegate and the commit that it is of.

Both come from `build.txt`, which setup.py writes. The installed package's metadata are not read,
because their reader brings the parsers of mail and of archives into memory.
"""

from contextlib import suppress
from pathlib import Path
from typing import Final

PACKAGE = Path(__file__).parent
NEVER_BUILT = "0.1.dev0"
SHOWN_DIGITS = 8


def find_version(package: Path) -> tuple[str, str]:
    """Return the version and the commit, "" if unknown."""
    version, commit = _built(package / "build.txt")
    now = _checked_out(package.parent / ".git")
    if now and now != commit:
        return f"{version.partition('+')[0]}+g{now[:SHOWN_DIGITS]}", now
    return version, commit


def describe(build: str) -> str:
    """Return the name, the version, how it was built ("compiled" or "plain") and the commit."""
    commit = f", commit {COMMIT[:SHOWN_DIGITS]}" if COMMIT else ""
    return f"tidegate {VERSION} ({build}{commit})"


def _built(file: Path) -> tuple[str, str]:
    """Return the two lines of the last build."""
    with suppress(OSError, ValueError):
        version, commit = file.read_text().split("\n")[:2]
        return version, commit
    return NEVER_BUILT, ""


def _checked_out(git: Path) -> str:
    """Return the commit of a checkout, "" without one or if it cannot be read."""
    with suppress(OSError, ValueError):
        if git.is_file():  # a worktree, whose file names its folder
            git = git.parent / git.read_text().removeprefix("gitdir:").strip()
        head = (git / "HEAD").read_text().strip()
        if not head.startswith("ref: "):
            return head
        return _reference(git, head.removeprefix("ref: "))
    return ""


def _reference(git: Path, name: str) -> str:
    """Return the commit of a branch, from its own file or from the file of all."""
    common = git / "commondir"
    if common.exists():
        git /= common.read_text().strip()
    with suppress(OSError):
        return (git / name).read_text().strip()
    for line in (git / "packed-refs").read_text().splitlines():
        commit, _, reference = line.partition(" ")
        if reference == name:
            return commit
    return ""


_FOUND = find_version(PACKAGE)
VERSION: Final = _FOUND[0]
COMMIT: Final = _FOUND[1]
