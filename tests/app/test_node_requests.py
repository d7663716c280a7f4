"""A node is forgotten by all bridges: `$CONTROL/tidegate/node`."""

from gateway.app.nodes import NodeRequests
from gateway.bridges.supervision.supervisor import Supervisor
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.nodes.bridges import Gateway
from tests.support.table import table


def ask(gateway: Gateway, payload: bytes) -> ReasonCode:
    requests = NodeRequests(Supervisor(gateway.services))
    return requests.receive(Message("$CONTROL/tidegate/node", payload, client_id="c"))


@table(
    "payload", [b"", b"[]", b"1", b"[" * 5000, b"{}", b'{"forget": 1}', b'{"forget": ""}', b"\xff"]
)
def test_what_is_no_request_is_refused(payload: bytes) -> None:
    assert ask(Gateway.make(), payload) == ReasonCode.PAYLOAD_FORMAT_INVALID


def test_names_and_instances_of_a_node_are_forgotten() -> None:
    gateway = Gateway.make()
    host = gateway.host()
    forgotten: list[str] = []
    host.at_forget(lambda node: forgotten.append(node) or 1)  # type: ignore[func-returns-value]  # appends
    host.read("n1", "temperature", 1, source="left")
    host.read("n1", "temperature", 2, source="right")
    assert ask(gateway, b'{"forget": "n1"}') == ReasonCode.SUCCESS
    host.read("n1", "temperature", 3, source="right")
    assert [topic for topic, _ in gateway.broker.readings] == [
        "sensors/n1/temperature",
        "sensors/n1/temperature/right",
        "sensors/n1/temperature",
    ]
    assert forgotten == ["n1"]
    host.close()
    assert gateway.forgetters == []
