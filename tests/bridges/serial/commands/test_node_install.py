"""The command `install`: an expression becomes a node's program."""

from gateway.bridges.serial.node_order import parse_order
from tests.bridges.serial.commands.rig import TOPIC, Rig, install
from tests.support.disk.storage import until
from tests.support.table import table

INSTALLS = [
    ({"where": "value > 20", "guard": 5}, b"\5\0\0\0\5count\1\x24\0\5\x14" + b"\0" * 7),
    ({"where": "topic = 'sensors/n1/count'", "guard": 0}, b"\0\0\0\0\5count"),
    ({"program": "0110 00"}, b"\x10\x0e\0\0\5count\1\x10\0"),
]


@table("fields, expected", INSTALLS)
def test_what_a_filter_becomes(fields: dict[str, object], expected: bytes) -> None:
    assert parse_order(install(**fields), "n1").program == b"\1\0\0\0" + expected


async def test_a_filter_is_installed_and_refused_by_the_node(rig: Rig) -> None:
    for payload in (install(id=0, where="value > 20"), install(version=2, program="0132")):
        rig.gateway.subscriptions.publish(TOPIC, payload)
    await until(lambda: len(rig.answers) == 2)
    assert rig.node.programs.version == 1
    assert rig.answers[0] == {"id": 0, "command": "install", "status": "done"}
    assert rig.answers[1]["reason"] == "the program does not verify"
