"""What clients order, and what they are told of orders that are none."""

from gateway.bridges.serial.frame_body import Command
from gateway.bridges.serial.node_order import parse_order
from gateway.mqtt.reason_codes import ReasonCode
from tests.bridges.serial.commands.rig import TOPIC, Rig, install
from tests.support.disk.storage import until
from tests.support.table import table

ORDERS = [
    (b'{"command":"read"}', (Command.READ, None, 0)),
    (b'{"command":"interval","seconds":0.1,"id":7}', (Command.INTERVAL, 7, 0.1)),
    (b'{"command":"identify"}', (Command.IDENTIFY, None, 10)),
    (b'{"command":"clock","id":"x"}', (Command.CLOCK, "x", 0)),
    (b'{"command":"update","id":8}', (None, 8, 0)),
]


@table("payload, expected", ORDERS)
def test_orders_that_are_understood(payload: bytes, expected: tuple[object, ...]) -> None:
    order = parse_order(payload, "n1")
    assert (order.command, order.id, order.seconds) == expected


MISTAKES = [
    (b"", "a JSON object"),
    (b"[" * 500, "a JSON object"),
    (b'"read"', "a JSON object"),
    (b"{}", "command None: there are read, interval, clock, identify, restart, install, update"),
    (b'{"command":["read"]}', "there are read"),
    (b'{"command":"read","seconds":1}', "seconds: not known of read"),
    (b'{"command":"interval"}', "seconds: a number must be given"),
    (b'{"command":"interval","seconds":true}', "a number must be given"),
    (b'{"command":"interval","seconds":0.01}', "0.1 to 86400 are allowed"),
    (b'{"command":"interval","seconds":NaN}', "are allowed"),
    (b'{"command":"identify","seconds":61}', "1 to 60 are allowed"),
    (b'{"command":"read","id":1.5}', "a text or a whole number"),
    (b'{"command":"read","id":"' + b"x" * 65 + b'"}', "at most 64 characters"),
    (b'{"command":"install"}', "quantity: a text of 1 to 64 bytes"),
    (install(version=0), "version 0: a whole number, 1 to 4294967295"),
    (install(version=None), "version None"),
    (install(guard=86_401), "guard 86401: a whole number, 0 to 86400"),
    (install(), "where (an expression) or program"),
    (install(where="TRUE", program=""), "where (an expression) or program"),
    (install(where=7), "an expression is expected"),
    (install(where="value >"), "where: "),
    (install(where="LENGTH(value) = 2"), "a node can decide nothing of it"),
    (install(where="value IN (" + ",".join(map(str, range(99))) + ")"), "a program of"),
    (install(program="0g"), "hexadecimal digits"),
    (install(program="00" * 220), "at most 229 fit a frame"),
    (install(where="TRUE", colour=1), "colour: not known of install"),
    (b" " * 4097, "4097 bytes: at most 4096"),
]


@table("payload, reason", MISTAKES)
async def test_orders_that_are_not_understood(rig: Rig, payload: bytes, reason: str) -> None:
    before = len(rig.answers)
    assert rig.gateway.subscriptions.publish(TOPIC, payload) == [ReasonCode.PAYLOAD_FORMAT_INVALID]
    await until(lambda: len(rig.answers) > before)
    assert rig.answers[-1]["status"] == "refused"
    assert reason in rig.answers[-1]["reason"]


async def test_a_refusal_names_its_order(rig: Rig) -> None:
    """As far as it can be told; half of a character is no text that can be sent."""
    for payload in (
        b'{"command":"interval","seconds":0,"id":7}',
        b'{"command":"nonsense","id":"a"}',
        b'{"command":"read","id":8,"\\ud800":1}',
        b'{"command":"read","id":"\\ud800"}',
    ):
        rig.gateway.subscriptions.publish(TOPIC, payload)
    await until(lambda: len(rig.answers) == 4)
    named = [(each.get("id"), each.get("command"), each["status"]) for each in rig.answers]
    assert set(named) == {
        (7, "interval", "refused"),
        (8, "read", "refused"),
        ("?", "read", "done"),
        ("a", None, "refused"),
    }
