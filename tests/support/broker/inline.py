"""A part of the gateway that messages go to, such as the uplink's rules, in a test's hands."""

from gateway.access.access import EVERYTHING
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.disk.held_disk import Disk
from tests.support.disk.sqlite_disk import SqliteDisk


class Inline:
    """A part of the gateway that takes messages, or refuses them with a code."""

    inline = True
    refusal = "it refuses"
    access = EVERYTHING

    def __init__(self, client_id: str = "inline", disk: Disk | SqliteDisk | None = None) -> None:
        self.client_id = client_id
        self.answer = ReasonCode.SUCCESS
        self.taken: list[Message] = []
        self.topic_filters: list[list[str]] = []
        self._disk = disk

    def receive(self, message: Message, topic_filters: list[str]) -> ReasonCode:
        if self.answer is ReasonCode.SUCCESS:
            self.taken.append(message)
            self.topic_filters.append(topic_filters)
            if self._disk is not None:
                self._disk.gather()
        return self.answer
