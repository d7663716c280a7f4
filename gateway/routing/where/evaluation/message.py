"""A message as `$where` sees it: what is worked out of its bytes at the first question.

Text, JSON value, topic levels and user properties are kept with the message, so that many
filters cost one decode (where-language 14.2).
"""

from typing import TYPE_CHECKING, Any, cast

from gateway.mqtt.message import UNKNOWN
from gateway.mqtt.message import Message as AcceptedMessage
from gateway.routing.where.evaluation.payload import NOT_JSON, decode_payload, parse_json
from gateway.routing.where.language.limits import STRING_CODE_POINTS
from gateway.routing.where.language.work import UNCOUNTED, OverBudgetError

if TYPE_CHECKING:
    from gateway.mqtt.publication import Publication

_CORRELATION = "correlation data"
"""Where long ones are kept among the parts that expressions have worked out."""


class Message(AcceptedMessage):
    """An accepted message that can be filtered; it holds nothing more than one that cannot."""

    __slots__ = ()

    def spend(self, work: int) -> None:
        """Count work that an evaluation is about to do; raise OverBudgetError beyond `room`."""
        if work > UNCOUNTED:
            self.room -= work
            if self.room < 0:
                raise OverBudgetError

    def text(self) -> str | None:
        """Return the whole payload as a STRING, None if it is none (where-language 6.3)."""
        decoded = self._decode()
        return None if decoded is None or len(decoded) > STRING_CODE_POINTS else decoded

    def json(self) -> Any:
        """Return the payload's JSON value, `payload.NOT_JSON` if it is not JSON."""
        if self._json is UNKNOWN:
            self._json = parse_json(self.payload)
        return self._json

    def payload_is_json(self) -> bool:
        """Say whether the payload is JSON as all later readers see it (where-language 6.3)."""
        return self.json() is not NOT_JSON

    def levels(self) -> list[str]:
        """Return the Topic Name split at `/`."""
        if self._levels is UNKNOWN:
            self._levels = self.topic.split("/")
        return self._levels

    def user(self) -> dict[str, str]:
        """Return the user properties by key, the last value of each (where-language 6.2)."""
        if self._user is UNKNOWN:
            self._user = dict(self.user_properties)
        return self._user

    def part_values(self) -> dict[Any, Any]:
        """Return what is known of parts of expressions, for who works one out to add to."""
        if self._part_values is None:
            self._part_values = {}
        return self._part_values

    def forget_parts(self) -> None:
        """Forget what expressions have worked out: the message may wait in a queue from now on."""
        self._part_values = None

    def forget_parts_but(self, kind: type) -> None:
        """Forget them but for what is kept under an object of this type."""
        values = self.part_values()
        self._part_values = {key: values[key] for key in values if type(key) is kind}

    def correlation_text(self) -> str | None:
        """Return Correlation Data decoded as UTF-8, None if absent or not UTF-8."""
        data = self.correlation_data
        if data is None:
            return None
        if len(data) <= UNCOUNTED:
            return decode_payload(data)
        values = self.part_values()
        if _CORRELATION not in values:
            values[_CORRELATION] = decode_payload(data)
        text: str | None = values[_CORRELATION]
        return text

    def _decode(self) -> str | None:
        if self._decoded is UNKNOWN:
            self._decoded = decode_payload(self.payload)
        return self._decoded


def message_of(publication: "Publication", number: int) -> Message:
    """Return the message with this number, from 0, of a publication: the same object each time."""
    if publication.messages is None:
        publication.messages = [None] * publication.count
    message = publication.messages[number]
    if message is None:
        message = publication.messages[number] = make_message(publication, number)
    return cast("Message", message)  # nobody keeps any other there


def make_message(publication: "Publication", number: int) -> Message:
    """Return the message with this number as an object that nobody keeps."""
    message = Message(
        publication.topic_of(number),
        publication.packets.one(number),
        publication.qos,
        publication.retain,
        client_id=publication.client_id,
        username=publication.username,
        received_at=publication.received_at,
        arrived=publication.arrived,
    )
    message.commit_within = publication.commit_within
    message.barrier = publication.barrier
    if publication.properties.data or publication.properties.expiry is not None:
        message.set_properties(publication.properties.fields)
    return message
