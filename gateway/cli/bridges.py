"""`tidegate bridges`: the installed kinds of bridges, with their keys and figures."""

from collections.abc import Sequence

from gateway.bridges.description import describe, describe_common
from gateway.bridges.kind import BridgeKind
from gateway.config.bridges import GROUP, bridge_kinds, load_kind
from gateway.errors import TidegateError


def show_bridges(names: Sequence[str]) -> None:
    """Print a line for each kind, or everything about some; raise TidegateError without one."""
    for name in names:
        print(describe(load(name)))
        print(describe_common(), end="")
    if not names:
        for each in bridge_kinds():
            print(f"{each:16}{load(each).summary}")


def load(name: str) -> BridgeKind:
    """Return a kind of bridge; raise TidegateError if it does not exist or cannot be loaded."""
    kinds = bridge_kinds()
    if name not in kinds:
        raise TidegateError(f"no bridge {name!r}; there are {', '.join(kinds)}")
    try:
        kind = load_kind(kinds[name])
    except ImportError as error:
        raise TidegateError(f"bridge {name} cannot be loaded: {error}") from error
    if not isinstance(kind, BridgeKind):
        raise TidegateError(f"bridge {name}: what the group {GROUP} names is no BridgeKind")
    return kind
