"""docs/use/bridges.md says what the kinds declare."""

import re
import sys
from pathlib import Path

from gateway.bridges.kind import BridgeKind
from gateway.cli.bridges import describe_common, describe_keys
from gateway.config.bridges import bridge_kinds, load_kind

PAGE = Path(__file__).parents[2] / "docs/use/bridges.md"
PART = re.compile(r"(<!-- tidegate bridges ?(\w*) -->\n).*?(<!-- end -->)", re.DOTALL)


def shipped(name: str) -> BridgeKind:
    kind = load_kind(bridge_kinds()[name])
    assert isinstance(kind, BridgeKind)
    return kind


def declared(match: re.Match[str]) -> str:
    text = describe_keys(shipped(match[2])) if match[2] else describe_common()
    return f"{match[1]}{text}{match[3]}"


def test_the_page_has_every_key_as_declared() -> None:
    text = PAGE.read_text(encoding="utf-8")
    described = {name for _, name, _ in PART.findall(text)}
    assert described == {"", *bridge_kinds()}
    assert PART.sub(declared, text) == text, f"run python {__file__}"


def test_every_kind_is_named_like_its_entry_point() -> None:
    assert [shipped(name).name for name in bridge_kinds()] == list(bridge_kinds())


if __name__ == "__main__":
    PAGE.write_text(PART.sub(declared, PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.exit(0)
