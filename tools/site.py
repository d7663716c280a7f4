"""Hooks of mkdocs: the navigation is docs/README.md, and pages outside docs/ are in the site."""

import os
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
INDEX = ROOT / "docs/README.md"
DECISIONS = "understand/decisions"

OUTSIDE = (
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "bench/README.md",
    "bench/attacks.md",
    "firmware/README.md",
    "systemd/README.md",
)
"""Pages that stand beside what they describe."""

_PLACES = {path: f"repository/{path.lower()}" for path in OUTSIDE}
_LINK = re.compile(
    r"(!?\[((?:[^\]\[]|\[[^\]]*\])*)\])\((?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)"
)
_FENCE = re.compile(r"^(```\w+) (.+)$", re.MULTILINE)
"""A block with a name, of its file or for its test; GitHub does not show it."""
_ITEM = re.compile(r"\[([^\]]+)\]\(([^)#]+)\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Make the navigation of the lists in docs/README.md."""
    nav: list[dict[str, object]] = [{"Tidegate": "README.md"}]
    for section in INDEX.read_text(encoding="utf-8").split("\n## ")[1:]:
        title, _, rest = section.partition("\n")
        nav.append({title: [_entry(*item) for item in _ITEM.findall(rest)]})
    nav.append({"Repository": [*_PLACES.values()]})
    config.nav = nav
    return config


def _entry(title: str, path: str) -> dict[str, object]:
    if not path.startswith(DECISIONS):
        return {title: path}
    found = _ITEM.findall((ROOT / "docs" / path).read_text(encoding="utf-8"))
    return {title: [path, *({name: f"{DECISIONS}/{page}"} for name, page in found)]}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside docs/."""
    for path, place in _PLACES.items():
        text = (ROOT / path).read_text(encoding="utf-8")
        files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return the page with links that lead to pages of the site, or to nothing."""
    del config, files
    here = page.file.src_uri
    source = next((path for path, place in _PLACES.items() if place == here), f"docs/{here}")

    def mend(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link[3]))
        if not (ROOT / target).exists():
            return link[0]  # mkdocs reports it
        place = _PLACES.get(target, target.removeprefix("docs/"))
        if place == target or (ROOT / target).is_dir():
            return link[2]  # the site has no folders, nor other files of the repository
        return f"{link[1]}({os.path.relpath(place, posixpath.dirname(here) or '.')}{link[4] or ''})"

    return _FENCE.sub(r'\1 title="\2"', _LINK.sub(mend, markdown))
