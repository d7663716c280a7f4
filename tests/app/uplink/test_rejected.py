"""Requests for rejected messages: what is refused, and what a full outbox leaves rejected."""

import json
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import gateway.app.responder as module
from gateway.app.responder import ANSWERS
from gateway.app.uplink.rejected import RejectedRequests
from gateway.config.load import load
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.disk.storage import outbox_row, until
from tests.support.gateway_here import Gateway
from tests.support.ports import free_port

SETTINGS = """
[[listener]]
port = {port}
[outbox]
maximum_messages = 2
[uplink]
url = "mqtt://127.0.0.1:{nobody}"
"""


class Desk:
    """A gateway's desk, and its answers."""

    def __init__(self, gateway: Gateway, desk: RejectedRequests) -> None:
        self.desk = desk
        self.heard: list[dict[str, Any]] = []
        desk._responder._core = cast("Any", SimpleNamespace(publish=self._hear, turn=gateway.turn))

    def _hear(self, message: Message) -> ReasonCode:
        self.heard.append(json.loads(message.payload))
        return ReasonCode.SUCCESS

    async def ask(self, request: object) -> dict[str, Any]:
        """Return the last answer; earlier ones are in `heard`."""
        self.heard.clear()
        payload = request if isinstance(request, bytes) else json.dumps(request).encode()
        message = Message("$CONTROL/tidegate/rejected", payload, response_topic=f"{ANSWERS}1")
        assert self.desk.receive(message) == ReasonCode.SUCCESS
        await until(lambda: any("done" in each for each in self.heard))
        return self.heard[-1]


async def test_a_request_is_answered_whatever_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[RejectedRequests] = []
    init = RejectedRequests.__init__

    def note(self: RejectedRequests, *arguments: Any) -> None:
        init(self, *arguments)
        made.append(self)

    monkeypatch.setattr(RejectedRequests, "__init__", note)
    file = tmp_path / "gateway.toml"
    file.write_text(SETTINGS.format(port=free_port(), nobody=free_port()))
    async with AsyncExitStack() as stack:
        gateway = Gateway(load(file), tmp_path / "data", stack)
        await gateway.start()
        desk = Desk(gateway, made[0])
        rejected = made[0]._rejected
        for number in range(1, 6):
            rejected.add(outbox_row(number, size=200), 0x99, 1_000)
        for bad, said in (
            (b"{", "is no JSON"),
            ([], 'no "do"'),
            ({"do": "keep"}, 'no "do"'),
            ({"do": "retry"}, "nor a list"),
            ({"do": "show", "numbers": [1]}, "nor a list"),
            ({"do": "show", "numbers": []}, "nor a list"),
            ({"do": "list", "uplink": "x"}, "there are: none with a name"),
            ({"do": "drop", "numbers": ["a.b.1"]}, "none of these is stored: a.b.1"),
        ):
            assert said in (await desk.ask(bad))["error"]
        assert await desk.ask({"do": "list"}) == {"done": True, "count": 5}
        answer = await desk.ask({"do": "retry", "numbers": "all"})
        assert answer["count"] == 2
        assert answer["error"] == "the outbox is full: some are still rejected"
        assert rejected.rows == 3
        assert gateway.counters.count("tidegate/uplink/rejected_retried") == 2
        assert (await desk.ask({"do": "drop", "numbers": "all"}))["count"] == 3
        assert gateway.counters.values["tidegate/uplink/rejected"] == 0
        no_topic = Message("$CONTROL/tidegate/rejected", b"{}", response_topic="a/b")
        assert made[0].receive(no_topic) == ReasonCode.TOPIC_NAME_INVALID
        wild = Message("$CONTROL/tidegate/rejected", b"{}", response_topic=f"{ANSWERS}#")
        assert made[0].receive(wild) >= 0x80
        monkeypatch.setattr(module, "MAXIMUM_WAITING", 0)
        more = Message("$CONTROL/tidegate/rejected", b"{}", response_topic=f"{ANSWERS}1")
        assert made[0].receive(more) == ReasonCode.QUOTA_EXCEEDED
