"""The tables of docs/configuration.md, made from the declarations."""

from collections.abc import Iterator

from gateway.config.configuration import Configuration
from gateway.settings.declaration import keys_of

BEGIN = "<!-- Made by `make reference` from gateway/settings: change it there. -->"
END = "<!-- End of what is made. -->"


def reference() -> str:
    """Return a section of Markdown for each table of the file."""
    return "\n".join(_tables(Configuration, ""))


def with_reference(page: str) -> str:
    """Return a page with the reference in place of what stands between BEGIN and END."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{reference()}\n{END}{after}"


def _tables(settings: type, place: str) -> Iterator[str]:
    for key in keys_of(settings):
        if key.table is None:
            continue
        name = f"{place}{key.name}"
        heading = f"[[{name}]]" if key.many and not key.alone else f"[{name}]"
        yield f"### `{heading}`\n\n{_description(key.table)}\n"
        yield from _rows(key.table)
        yield ""
        yield from _tables(key.table, f"{name}.")


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
