"""`tidegate docs`: finds and prints a section of the documentation, without a network."""

import pydoc
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gateway.errors import TidegateError

PLACES = (
    Path(__file__).parents[2] / "docs",  # a checkout
    Path(sys.prefix) / "share" / "tidegate" / "docs",  # installed
)
ROOMS = ("start", "use", "operate", "understand")
MOST = 12
"""Further sections that are listed."""

_FENCE = re.compile(r"```|~~~")
_HEADING = re.compile(r"(#+) (.+)")
_BRACES = re.compile(r"`(?:[\w<>/]*\{\w+(?:,\w+)+\})+[\w<>/]*`")
_LINK = re.compile(r"!?\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\([^()\s]*\)")


@dataclass(frozen=True, slots=True)
class Section:
    """A heading of a page and the text below it, up to the next heading."""

    page: str
    heading: str
    text: str


def command_docs(words: list[str]) -> int:
    """Print the section or page that fits the words best, and name others; list pages without."""
    sections = [section for page in _pages() for section in read_sections(page)]
    if not words:
        titles = {section.page: section.heading for section in reversed(sections)}
        listed = (f"{page:16} {title}" for page, title in reversed(titles.items()))
        pydoc.pager("\n".join(listed) + "\n")
        return 0
    found = find(sections, words)
    if not found:
        raise TidegateError(f"no page has {' '.join(words)!r}; tidegate docs lists the pages")
    first, *others = found
    if [first.page] == [word.lower() for word in words]:  # the page by its name
        shown, others = [each for each in sections if each.page == first.page], []
    else:
        shown = [first]
    lines = [f"{each.page}: {each.heading}\n\n{each.text}" for each in shown]
    if others:
        named = [f"    {each.page}: {each.heading}" for each in others[:MOST]]
        lines.append("\n".join(["See also, by their words:", *named]) + "\n")
    pydoc.pager("\n".join(lines))
    return 0


def find(sections: list[Section], words: list[str]) -> list[Section]:
    """Return the sections that have all words, best first.

    Those with a word in page or heading come first, then those that define it: in the first cell of
    a row, or as an item's first name in code font. The first level of a topic is no such word.
    """
    patterns = [re.compile(rf"(?<!\w){re.escape(word)}(?!\w*/)", re.IGNORECASE) for word in words]
    rows = [
        re.compile(
            rf"^(?:\| `?|\| `[^|]*`|- `){re.escape(word)}(?![\w/])", re.IGNORECASE | re.MULTILINE
        )
        for word in words
    ]

    def rank(section: Section) -> tuple[int, int, float]:
        title, text = f"{section.page} {section.heading}", expand_names(section.text)
        if not all(pattern.search(f"{title} {text}") for pattern in patterns):
            return 0, 0, 0.0
        in_title = sum(bool(pattern.search(title)) for pattern in patterns)
        count = sum(len(pattern.findall(text)) for pattern in patterns)
        density = count / (50 + len(text.split()))
        defined = sum(bool(row.search(text)) for row in rows)
        return 1 + in_title + (section.page == words[0].lower()), defined, density

    ranked = [(rank(section), section) for section in sections]
    found = [pair for pair in ranked if pair[0][0]]
    return [section for _, section in sorted(found, key=lambda pair: pair[0], reverse=True)]


def expand_names(text: str) -> str:
    """Write names such as `bytes/{received,sent}` one by one: `bytes/received`, `bytes/sent`."""
    return _BRACES.sub(
        lambda match: ", ".join(f"`{name}`" for name in _names(match[0][1:-1])), text
    )


def _names(name: str) -> Iterator[str]:
    before, brace, rest = name.partition("{")
    if not brace:
        yield name
        return
    choices, _, after = rest.partition("}")
    for choice in choices.split(","):
        yield from _names(before + choice + after)


def _pages() -> list[Path]:
    for place in PLACES:
        if found := [page for room in ROOMS for page in sorted((place / room).glob("*.md"))]:
            return found
    raise TidegateError(f"no documentation at {' or '.join(map(str, PLACES))}")


def read_sections(page: Path) -> Iterator[Section]:
    """Yield the sections of a page in Markdown, without the targets of its links."""
    heading, lines, code = page.stem, list[str](), False
    for line in page.read_text(encoding="utf-8").splitlines():
        code ^= _FENCE.match(line) is not None
        match = None if code else _HEADING.match(line)
        if match is None:
            lines.append(line if code else _LINK.sub(r"\1", line))
            continue
        if lines:
            yield _section(page, heading, lines)
        heading, lines = match[2], []
    yield _section(page, heading, lines)


def _section(page: Path, heading: str, lines: list[str]) -> Section:
    text = re.sub(r"<!--.*?-->\n?", "", "\n".join(lines), flags=re.DOTALL)
    return Section(page.stem, heading, text.strip("\n") + "\n")
