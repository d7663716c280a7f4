"""Describes a kind of bridge as Markdown, from its declaration."""

from collections.abc import Iterator

from gateway.bridges.kind import BridgeKind
from gateway.bridges.settings import BridgeSettings
from gateway.settings.declaration import keys_of


def describe(kind: BridgeKind) -> str:
    """Return the keys and figures of a kind."""
    return "\n".join(_lines(kind)) + "\n"


def describe_common() -> str:
    """Return the keys that every kind has."""
    return "\n".join(_keys(BridgeSettings, set())) + "\n"


def _lines(kind: BridgeKind) -> Iterator[str]:
    yield f"`[[{kind.name}]]`: {kind.summary}."
    if kind.extra:
        yield f"It needs the extra `{kind.extra}`."
    yield ""
    yield from _keys(kind.settings, {each.name for each in keys_of(BridgeSettings)})
    yield from _tables(kind.settings, kind.name)
    if kind.counters or kind.gauges:
        yield ""
        yield f"| below `$SYS/broker/tidegate/{kind.name}/` | meaning |"
        yield "| --- | --- |"
        for name, meaning in kind.counters.items():
            yield f"| `{name}` | {meaning} |"
        for name, meaning in kind.gauges.items():
            yield f"| `<bridge>/{name}` | {meaning} |"


def _tables(settings: type, place: str) -> Iterator[str]:
    """Yield the tables in a table, each with a sentence and its keys."""
    for each in keys_of(settings):
        if each.table is not None:
            name = f"{place}.{each.name}"
            least = "1 to" if each.needed else "up to"
            yield f"\n`[[{name}]]`, {least} {each.many:,}: {_summary(each.table)}\n"
            yield from _keys(each.table, set())
            yield from _tables(each.table, name)


def _summary(settings: type) -> str:
    return (settings.__doc__ or "").partition("\n")[0]


def _keys(settings: type, without: set[str]) -> Iterator[str]:
    yield "| key | default | meaning |"
    yield "| --- | --- | --- |"
    for each in keys_of(settings):
        if each.table is None and each.name not in without:
            yield f"| `{each.name}` | {each.default_shown} | {each.meaning} |"
