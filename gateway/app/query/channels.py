"""Queries about the messages of channels: `channel/peek`, `channel/consumers`, and their moves."""

from itertools import chain, islice
from typing import TYPE_CHECKING

from gateway.app.control import Control
from gateway.app.parts import Core
from gateway.app.query.topics import payload_of
from gateway.app.responder import MAXIMUM_LIMIT, Answer, Request, RequestError, Responder
from gateway.broker.channels.channels import Channels
from gateway.broker.publishing.topic_memory import PAYLOAD_BYTES
from gateway.session.span import Span

if TYPE_CHECKING:
    from gateway.broker.channels.channel import Channel
    from gateway.broker.channels.moving import Find

MAXIMUM_MOVED = 1_000
"""Messages that one request moves; a program asks again for more."""

READING_SECONDS = 0.05
"""Seconds to wait for messages that are read from disk."""


class ChannelQueries:
    """Answers from the present state of channels, and moves messages between them."""

    def __init__(self, core: Core, control: Control, responder: Responder) -> None:
        self._core = core
        self._control = control
        self._channels: Channels = core.broker.channels
        responder.know("channel/peek", self._peek, "channel", "offset", "limit")
        responder.know("channel/consumers", self._consumers, "channel", "offset", "limit")
        responder.know("channel/move", self._move, "channel", "to", "count")
        responder.know("channel/redrive", self._redrive, "channel", "count")

    async def _peek(self, request: Request) -> Answer:
        """Return the first messages that wait, which stay."""
        channel = self._named(request, "channel")
        offset, limit = request.window
        found: list[tuple[Span, int, int]] = []
        offers = chain.from_iterable(each.waiting.offers() for each in channel.every_level)
        for offer in islice(offers, offset + limit + 1):
            span = offer.span
            found += [(span, number, offer.attempts) for number in _numbers(span)]
            if len(found) > offset + limit:
                break
        page = found[offset : offset + limit]
        answer = await request.page(page, _message_row, len(found))
        return {**answer, "total": channel.depth}

    async def _consumers(self, request: Request) -> Answer:
        """Return the consumers, and how much of their windows is in use."""
        channel = self._named(request, "channel")
        return await request.page(channel.consumers.windows(), lambda window: window._asdict())

    async def _move(self, request: Request) -> Answer:
        from gateway.broker.channels.moving import to_channel  # in memory where it is used

        target = self._named(request, "to")
        source = self._named(request, "channel")
        if source is target:
            raise RequestError("channel and to are the same channel")
        return await self._each(request, source, to_channel(target), "move")

    async def _redrive(self, request: Request) -> Answer:
        from gateway.broker.channels.moving import back

        source = self._named(request, "channel")
        return await self._each(
            request, source, back(self._channels.named, self._core.turn.now), "redrive"
        )

    async def _each(self, request: Request, source: "Channel", find: "Find", word: str) -> Answer:
        """Move messages one after the other; new ones that come meanwhile stay."""
        from gateway.broker.channels.moving import move_next

        count = request.whole("count", 1, MAXIMUM_MOVED, MAXIMUM_MOVED)
        name = source.settings.share_name
        self._control.note_order(f"channel {name}: {word}", request.client_id)
        moved, left, waits = 0, min(count, source.depth), True
        while left:
            await request.breathe()
            target = move_next(source, find, self._core.turn.now().monotonic)
            if target is None:
                for each in source.every_level:
                    each.page_in()
                if not (waits and any(each.queue.messages for each in source.every_level)):
                    break
                waits = False  # the rest is read from disk, or the target is full
                await request.sleep(READING_SECONDS)
                continue
            left, waits = left - 1, True
            moved += target is not source
        return {"moved": moved, "left": source.depth}

    def _named(self, request: Request, key: str) -> "Channel":
        name = request.needed(key)
        found = self._channels.named(name)
        if not found:
            raise RequestError(f"{key}: there is no channel {name[:80]!r}")
        return found[0]


def _numbers(span: Span) -> range:
    return range(span.first, span.first + min(span.count, MAXIMUM_LIMIT))


def _message_row(found: tuple[Span, int, int]) -> Answer:
    from gateway.broker.channels.stamps import message_id

    span, number, attempts = found
    message = span.publication.new_message(number)
    return {
        "id": f"{message_id(span, number):016x}",
        "topic": message.topic,
        **payload_of(message.payload[:PAYLOAD_BYTES], len(message.payload)),
        "qos": span.qos,
        "queued_at": message.received_at,
        "attempts": attempts,
        "client": message.client_id,
        "properties": [list(each) for each in message.user_properties],
    }
