"""`tidegate firmware ports`: lists connected boards, and finds the port of a command."""

from gateway.bridges.serial.port import plugged_in
from gateway.flashing.errors import FlashingError
from gateway.flashing.port import Port
from gateway.flashing.ports import runs_on


def show_ports(ports: list[str]) -> int:
    """Print a line for each port; return 1 if there is none."""
    found = plugged_in()
    titles = {each.port: each.title for each in found}
    names = ports or list(titles)
    if not names:
        print("no board is plugged in at a USB port")
        return 1
    for name in names:
        title = f"{titles[name]}: " if name in titles else ""
        print(f"{name}  {title}", end="", flush=True)  # the rest may take a while
        print(runs_on(Port(name)))
    return 0


def only_port(named: str | None) -> str:
    """Return the named port, or the only one; raise FlashingError."""
    if named is not None:
        return named
    found = [each.port for each in plugged_in()]
    if len(found) == 1:
        return found[0]
    if found:
        raise FlashingError(f"several boards are plugged in; --port names one: {', '.join(found)}")
    raise FlashingError("no board is plugged in at a USB port; --port names another port")
