"""Check the English of the pages, and of what the programs print as help.

    python tools/prose.py [PAGE ...]

The rules are those of CONTRIBUTING.md, "Writing", as far as a program can check them.
"""

import re
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[1]

PAGES = ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "SECURITY.md", "docs/**/*.md")

LONGEST = 30
"""Words of a sentence, at most. Names in code font that follow each other are one."""

_MARKDOWN = MarkdownIt("commonmark").enable("table")
_LISTS = ("td_open", "td_close", "list_item_open", "list_item_close")
_NAMES = re.compile(r"`(?:(?:,| and| or|,? \.\.\.|/| to)? ?`)*")
_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9`\"(])")
_SHORT = re.compile(r"\b(e\.g|i\.e|etc|cf|vs|approx|No|Nr|p)\.")
_WORD = re.compile(r"[\w`][\w'`.-]*")

_VERBS = (
    "Is|Are|Was|Were|Has|Had|Does|Did|Can|Could|Should|Would|May|Might|Must|Will|Shall|"
    "Comes|Goes|Lies|Stands|Breaks|Dies|Fails|Becomes|Ends"
)
INVERSION = re.compile(
    rf"(?:{_VERBS}) (?:the|an?|it|its|they|this|that|these|there|one|no|some|any|each|every|all|"
    r"several|more|`|both|nothing|something|only|another|not)\b|"
    r"(?:Nor|Neither|Never|Only then|So|Thus|Here|There|Then) (?:does|do|did|can|will|has|have)\b"
)
"""A sentence that begins so and is no question."""

WORDS = {
    "anew": "again",
    "dear": "expensive",
    "owed": "not yet delivered",
    "wherefrom": "where … from",
    "thereof": "of it",
    "therein": "in it",
    "is told": "is reported, is notified",
    "are told": "are notified",
    "looks? after": "manage, watch",
    "looked at": "read, checked",
    "goes? out": "is sent",
    "went out": "was sent",
    "at length": "in detail",
    "by and by": "gradually",
    "ere": "before",
    "whence": "from where",
    "hence": "so",
    "heeds?": "follow",
    "wants? for": "lack",
    "no more than one": "at most one",
}
"""Words that readers of the field do not know, or know as something else; each with a better."""
_PRIVATE = re.compile(rf"\b(?:{'|'.join(WORDS)})\b", re.IGNORECASE)


def page_faults(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and what is wrong of each sentence and heading of a page in Markdown."""
    level, line, listed, seen = 0, 0, 0, set[str]()
    tokens = _MARKDOWN.parse(text)
    for before, token in pairwise(tokens):
        line = token.map[0] + 1 if token.map else line
        listed += token.nesting * (token.type in _LISTS)
        if token.type == "inline" and before.type == "heading_open":
            now = int(before.tag[1])
            faults = _heading(token.content, now, level, seen)
            level = now
        elif token.type == "inline":
            faults = text_faults(_plain(token), "; " if listed else "")
        else:
            continue
        for fault in faults:
            yield line, fault


def text_faults(text: str, separator: str = "") -> Iterator[str]:
    """Yield what is wrong in plain text; a piece of code is a `, the separator ends a sentence."""
    text = _SHORT.sub(r"\1", " ".join(text.split()))
    for sentence in _END.split(text.replace(separator, ". `") if separator else text):
        shown = sentence if len(sentence) < 70 else f"{sentence[:67]}…"
        count = len(_WORD.findall(_NAMES.sub("`", sentence)))
        if count > LONGEST:
            yield f"{count} words in a sentence, {LONGEST} at most: {shown}"
        if INVERSION.match(sentence) and not sentence.endswith("?"):
            yield f"the subject first: {shown}"
        for word in _PRIVATE.findall(sentence):
            yield f"{word!r}: {_better(word)}: {shown}"


def _better(word: str) -> str:
    return next(better for bad, better in WORDS.items() if re.fullmatch(bad, word, re.IGNORECASE))


def _heading(words: str, level: int, above: int, seen: set[str]) -> Iterator[str]:
    if level > above + 1:
        yield f"a heading of level {level} below one of level {above}: {words}"
    if words.endswith((".", ":", "!")):
        yield f"a heading without punctuation at its end: {words}"
    if len(words.split()) > 10:
        yield f"a heading of at most 10 words: {words}"
    if words in seen:
        yield f"two headings that are equal: {words}"
    seen.add(words)


def _plain(token: Token) -> str:
    """Return the text of an inline token, with ` for each piece of code."""
    parts = []
    for child in token.children or ():
        match child.type:
            case "text":
                parts.append(child.content)
            case "code_inline":
                parts.append("`")
            case "softbreak" | "hardbreak":
                parts.append(" ")
    return "".join(parts)


def main(pages: list[str]) -> int:
    """Print what is wrong of these pages, or of all; return 1 if anything is."""
    found = 0
    files = [ROOT / page for page in pages] or [
        path for pattern in PAGES for path in sorted(ROOT.glob(pattern))
    ]
    for file in files:
        for line, fault in page_faults(file.read_text(encoding="utf-8")):
            print(f"{file.relative_to(ROOT)}:{line}: {fault}")
            found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
