"""The lists of keys in the documentation, made from the declarations."""

import re
from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter

from gateway.config.configuration import Configuration
from gateway.settings.declaration import Key, keys_of

BEGIN = "<!-- Made by `make reference` from gateway/settings: change it there. -->"
END = "<!-- End of what is made. -->"

_RANGE = re.compile(r"(?<!\S)(\d[\w.]*) to (?=\d)")
_DASHED = "\\1\N{EN DASH}"

_SHORT = re.compile(r"\d{1,2} to (?:\d{1,2}|100)")
_NUMBERS = re.compile(r"(?:from )?[\d.]+(?: to [\d.]+)?")
_SHOWN = re.compile(
    r"list of .+|octal digits|topic (?:levels|name|with placeholders)|beginning of .+"
)
"""What the examples of a page show."""
_WITH_UNIT = re.compile(r"(?:from )?\d[\w.]*(?: to \d\w*)?")

OBVIOUS = frozenset({"", "boolean", "duration", "file", "level", "number", "text", "topic filter"})
"""What is allowed, where the meaning or the default already says it."""


def reference() -> str:
    """Return a section of Markdown for each table of the file."""
    return "\n".join(_tables(Configuration, ""))


def with_reference(page: str) -> str:
    """Return a page with the reference between BEGIN and END replaced."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{reference()}\n{END}{after}"


def key_lines(settings: type, without: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield a line of Markdown for each key: its default, what is allowed, what it means."""
    for key in keys_of(settings):
        if key.table is None and key.name not in without:
            yield f"- {_name_and_value(key, key.check.allowed)}: {key.meaning}"


def _page_lines(settings: type) -> Iterator[str]:
    """Yield them without the ranges that only `tidegate check` needs to say."""
    for key in keys_of(settings):
        if key.table is None:
            allowed = "" if _is_wide(key) else key.check.allowed
            yield f"- {_name_and_value(key, allowed)}: {key.meaning}"


def _is_wide(key: Key) -> bool:
    """Return whether what is allowed is no help: the default or an example shows the form."""
    form = _NUMBERS if key.default_shown == "-" else _WITH_UNIT
    allowed = key.check.allowed
    if _SHOWN.fullmatch(allowed):
        return True
    return form.fullmatch(allowed) is not None and _SHORT.fullmatch(allowed) is None


def _name_and_value(key: Key, allowed: str) -> str:
    """Return such as "`port = 1883` (1-65535)"."""
    allowed = "" if allowed in OBVIOUS else _RANGE.sub(_DASHED, allowed)
    name, note = f"`{key.name}`", ""
    if key.needed:
        note = "required"
    elif key.shown not in ("", "-"):
        note = f"default: {key.shown}"
    elif key.default_shown != "-":
        name = f"`{key.name} = {key.default_shown.strip('`')}`"
        allowed = _others(key) or allowed
    notes = "; ".join(filter(None, (note, allowed)))
    return f"{name} ({notes})" if notes else name


def _others(key: Key) -> str:
    """Return the words that are allowed beside the default, if there are any."""
    words = [f"`{key.check.spell(word)}`" for word in key.check.words]
    others = [word for word in words if word != key.default_shown]
    return f"or {', '.join(others)}" if others else ""


def _tables(settings: type, place: str) -> Iterator[str]:
    """Yield a section for each table below `place`; one for neighbours with the same keys."""
    keys = [key for key in keys_of(settings) if key.table is not None]
    for table, of_table in groupby(keys, key=attrgetter("table")):
        names = [(f"{place}{key.name}", key.many and not key.single_table) for key in of_table]
        headings = ", ".join(f"`[[{name}]]`" if many else f"`[{name}]`" for name, many in names)
        yield f"### {headings}\n\n{_description(table)}\n"
        yield from _page_lines(table)
        yield ""
        for name, _ in names:
            yield from _tables(table, f"{name}.")


def _description(settings: type) -> str:
    lines = (settings.__doc__ or "").strip().splitlines()
    return "\n".join(line.strip() for line in lines)
