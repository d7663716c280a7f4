"""The tables of docs/use/configuration.md, made from the declarations."""

from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter

from gateway.config.configuration import Configuration
from gateway.settings.declaration import keys_of

BEGIN = "<!-- Made by `make reference` from gateway/settings: change it there. -->"
END = "<!-- End of what is made. -->"


def reference() -> str:
    """Return a section of Markdown for each table of the file."""
    return "\n".join(_tables(Configuration, ""))


def with_reference(page: str) -> str:
    """Return a page with the reference between BEGIN and END replaced."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{reference()}\n{END}{after}"


def _tables(settings: type, place: str) -> Iterator[str]:
    """Yield a section for each table below `place`; one for neighbours with the same keys."""
    keys = [key for key in keys_of(settings) if key.table is not None]
    for table, of_table in groupby(keys, key=attrgetter("table")):
        names = [(f"{place}{key.name}", key.many and not key.single_table) for key in of_table]
        headings = ", ".join(f"`[[{name}]]`" if many else f"`[{name}]`" for name, many in names)
        yield f"### {headings}\n\n{_description(table)}\n"
        yield from _rows(table)
        yield ""
        for name, _ in names:
            yield from _tables(table, f"{name}.")


def _description(settings: type) -> str:
    lines = (settings.__doc__ or "").strip().splitlines()
    return "\n".join(line.strip() for line in lines)


def _rows(settings: type) -> Iterator[str]:
    yield "| key | default | allowed | meaning |"
    yield "| --- | --- | --- | --- |"
    for key in keys_of(settings):
        if key.table is None:
            cells = (f"`{key.name}`", key.default_shown, key.check.allowed, key.meaning)
            yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
