"""`tidegate bridges`: the kinds of bridges that are installed, and what each has to be told."""

from gateway.bridges.description import describe, describe_common
from gateway.bridges.kind import BridgeKind
from gateway.config.bridges import GROUP, bridge_kinds, load_kind
from gateway.errors import TidegateError


def show_bridges(name: str | None) -> None:
    """Print a line for each kind, or everything about one; raise TidegateError without it."""
    kinds = bridge_kinds()
    if name is None:
        for each in kinds:
            print(f"{each:16}{_load(each).summary}")
        return
    if name not in kinds:
        raise TidegateError(f"no bridge {name!r}; there are {', '.join(kinds)}")
    print(describe(_load(name)))
    print(describe_common(), end="")


def _load(name: str) -> BridgeKind:
    try:
        kind = load_kind(bridge_kinds()[name])
    except ImportError as error:
        raise TidegateError(f"bridge {name} cannot be loaded: {error}") from error
    if not isinstance(kind, BridgeKind):
        raise TidegateError(f"bridge {name}: what the group {GROUP} names is no BridgeKind")
    return kind
