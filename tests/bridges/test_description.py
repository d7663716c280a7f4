"""docs/use/bridges.md has every key that the kinds declare, with its default."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from gateway.bridges.kind import BridgeKind
from gateway.bridges.settings import BridgeSettings
from gateway.cli.bridges import describe
from gateway.config.bridges import bridge_kinds, load_kind
from gateway.settings.declaration import Key, keys_of
from tests.support.table import table

PAGE = (Path(__file__).parents[2] / "docs/use/bridges.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```toml\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINE = re.compile(r"(?:\[\[(?P<table>[\w.]+)\]\]|(?:# )?(?P<key>\w+) = .+)")
COMMON = {each.name for each in keys_of(BridgeSettings)}


def shipped(name: str) -> BridgeKind:
    kind = load_kind(bridge_kinds()[name])
    assert isinstance(kind, BridgeKind)
    return kind


def declared(settings: type, place: str) -> Iterator[tuple[str, str, Key]]:
    """Yield the table and name of each key of a kind, beside those of every kind."""
    for each in keys_of(settings):
        if each.table is not None:
            yield from declared(each.table, f"{place}.{each.name}")
        elif each.name not in COMMON or "." in place:
            yield place, each.name, each


def example(kind: str) -> str:
    """Return the kind's first example below its own heading: the one with all keys."""
    examples: list[str] = BLOCK.findall(PAGE.partition("\n## Serial\n")[2])
    return next(text for text in examples if text.startswith(f"[[{kind}]]"))


def shown(text: str) -> dict[tuple[str, str], str]:
    """Return the line of each key of an example, by its table and name."""
    found, place = {}, ""
    for match in map(LINE.match, text.splitlines()):
        if match and match["table"]:
            place = match["table"]
        elif match:
            found[place, match["key"]] = match[0]
    return found


@table("name", list(bridge_kinds()))
def test_the_example_has_every_key_and_its_default(name: str) -> None:
    lines = shown(example(name))
    keys = {(place, key): each for place, key, each in declared(shipped(name).settings, name)}
    assert lines.keys() == keys.keys()
    for place, line in lines.items():
        each = keys[place]
        if each.needed or place == ("topics", "preset"):
            assert not line.startswith("#"), line
        elif not line.startswith("#"):
            assert each.default is not None, f"{line}: a key without a default is behind #"
            assert each.check(tomllib.loads(line)[place[1]]) == each.default, line


def test_the_page_has_the_keys_of_every_kind() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| (?:`([^`]+)`)? ?\|", PAGE.partition("\n## ")[0], re.MULTILINE
    )
    assert {name for name, _ in rows} == COMMON
    for each in keys_of(BridgeSettings):
        value = dict(rows)[each.name]
        assert not value or each.check(tomllib.loads(f"v = {value}")["v"]) == each.default


def test_a_kind_s_description_has_every_key() -> None:
    for name in bridge_kinds():
        text = describe(shipped(name))
        assert all(f"- `{key}" in text for _, key, _ in declared(shipped(name).settings, name))


def test_every_kind_is_named_like_its_entry_point() -> None:
    assert [shipped(name).name for name in bridge_kinds()] == list(bridge_kinds())
