"""An operator who asks a running gateway by MQTT, as docs/operate/query.md has it."""

import json
from typing import Any

from gateway.mqtt.packets import PubAck, Publish
from gateway.mqtt.properties import Properties
from tests.support.raw_client import RawClient
from tests.support.schemas import validator_of

ANSWERS = "$CONTROL/answers/test"


class Operator:
    """Asks on a connection of its own; every answer must be as its schema has it."""

    def __init__(self, client: RawClient, answers: str = ANSWERS) -> None:
        self.client = client
        self._answers = answers
        self._number = 0

    @classmethod
    async def open(cls, port: int, client_id: str = "operator", **fields: object) -> "Operator":
        client = await RawClient.open(port)
        await client.connect_as(client_id, **fields)
        answers = ANSWERS if client_id == "operator" else f"{ANSWERS}/{client_id}"
        assert await client.subscribe(answers, 0) == 0
        return cls(client, answers)

    async def send(
        self, what: str, payload: bytes, *, qos: int = 1, topic: str | None = ""
    ) -> None:
        """Ask without waiting for anything; without a Response Topic if that is None."""
        topic = self._answers if topic == "" else topic
        self._number += 1
        name = b"%d" % self._number
        properties = Properties(response_topic=topic, correlation_data=name)
        packet_id = self._number if qos else 0
        await self.client.send(
            Publish(
                f"$CONTROL/tidegate/query/{what}",
                payload,
                qos,
                packet_id=packet_id,
                properties=properties,
            )
        )

    async def code(self, what: str, payload: bytes = b"{}", topic: str | None = "") -> int:
        """Return the reason code of a request's PUBACK."""
        await self.send(what, payload, topic=topic)
        while not isinstance(packet := await self.client.receive(), PubAck):
            pass
        return packet.reason_code

    async def answer(self) -> dict[str, Any]:
        """Return the next answer."""
        while not isinstance(packet := await self.client.receive(), Publish):
            pass
        assert packet.properties.content_type == "application/json"
        answer: dict[str, Any] = json.loads(packet.payload)
        return answer

    async def ask(self, what: str, **request: object) -> dict[str, Any]:
        """Return the answer to a request."""
        await self.send(what, json.dumps(request).encode())
        answer = await self.answer()
        validator_of(f"query/{what.replace('/', '-')}").validate(answer)
        return answer

    async def refused(self, what: str, **request: object) -> str:
        """Return why a request was refused."""
        error = (await self.ask(what, **request))["error"]
        assert isinstance(error, str)
        return error

    async def close(self) -> None:
        await self.client.close()
