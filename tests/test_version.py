import subprocess
from pathlib import Path

import pytest

from gateway import version
from gateway.version import NEVER_BUILT, describe, find_version

COMMIT = "0e2240dd3d1942c59ae4777ae703c2facaa6a15c"
ENVIRONMENT = {
    **{f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "PATH": "/usr/bin:/bin",
}


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def commit(folder: Path) -> str:
    git(folder, "commit", "-q", "--allow-empty", "-m", "more")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Give the package of a folder that is no checkout."""
    (tmp_path / "whole/gateway").mkdir(parents=True)
    return tmp_path / "whole/gateway"


@pytest.fixture
def checkout(package: Path) -> Path:
    git(package.parent, "init", "-q", "-b", "main")
    commit(package.parent)
    return package


def built(package: Path, number: str, built_from: str) -> None:
    (package / "build.txt").write_text(f"{number}\n{built_from}\n")


def test_what_was_installed_says_what_it_was_built_from(package: Path) -> None:
    built(package, "0.1.0", COMMIT)
    assert find_version(package) == ("0.1.0", COMMIT)


@pytest.mark.parametrize("text", [None, "", "0.1.0", b"\xff\n\n"])
def test_without_what_the_build_writes_nothing_is_known(
    package: Path, text: str | bytes | None
) -> None:
    if text is not None:
        (package / "build.txt").write_bytes(text if isinstance(text, bytes) else text.encode())
    assert find_version(package) == (NEVER_BUILT, "")


def test_a_checkout_says_what_is_checked_out(checkout: Path) -> None:
    head = git(checkout, "rev-parse", "HEAD")
    assert find_version(checkout) == (f"{NEVER_BUILT}+g{head[:8]}", head)
    built(checkout, "0.1.0", head)
    assert find_version(checkout) == ("0.1.0", head)
    head = commit(checkout.parent)  # and nothing is built again
    assert find_version(checkout) == (f"0.1.0+g{head[:8]}", head)
    built(checkout, "0.1.1.dev7+g0e2240dd", COMMIT)
    assert find_version(checkout) == (f"0.1.1.dev7+g{head[:8]}", head)


def test_however_git_keeps_the_commit(checkout: Path, tmp_path: Path) -> None:
    whole = checkout.parent
    git(whole, "tag", "v1")
    git(whole, "pack-refs", "--all")
    git(whole, "worktree", "add", "-q", "-b", "other", str(tmp_path / "other"))
    head = commit(tmp_path / "other")
    assert find_version(checkout)[1] == git(whole, "rev-parse", "main")
    assert find_version(tmp_path / "other" / "gateway")[1] == head
    git(tmp_path / "other", "pack-refs", "--all")
    assert find_version(tmp_path / "other" / "gateway")[1] == head
    git(whole, "checkout", "-q", "--detach")
    assert find_version(checkout)[1] == git(whole, "rev-parse", "HEAD")


def test_a_repository_without_a_commit_has_none(package: Path) -> None:
    git(package.parent, "init", "-q")
    assert find_version(package) == (NEVER_BUILT, "")
    (package.parent / ".git/packed-refs").write_text(f"{COMMIT} refs/heads/elsewhere\n")
    assert find_version(package) == (NEVER_BUILT, "")


def test_the_line_has_version_build_and_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version, "VERSION", "0.1.0")
    monkeypatch.setattr(version, "COMMIT", COMMIT)
    assert describe("compiled") == "tidegate 0.1.0 (compiled, commit 0e2240dd)"
    monkeypatch.setattr(version, "COMMIT", "")
    assert describe("plain") == "tidegate 0.1.0 (plain)"
