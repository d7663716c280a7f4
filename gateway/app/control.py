"""Commands that clients publish below `$CONTROL/tidegate/`."""

import logging
from collections.abc import Callable

from gateway.access.access import EVERYTHING
from gateway.access.topics import CONTROL
from gateway.broker.own_names import CONTROL_CLIENT
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode

logger = logging.getLogger(__name__)


class Control:
    """An inline client that executes commands: the topic names a part, the payload a word."""

    client_id = CONTROL_CLIENT
    inline = True
    access = EVERYTHING
    refusal = ""
    topic_filters = (CONTROL + "#",)

    def __init__(self) -> None:
        self.on_order: list[Callable[[str, str], None]] = []
        """Called with the command, and the client's identifier."""
        self._commands: dict[tuple[str, str], Callable[[], None]] = {}
        self._requests: dict[str, Callable[[Message], ReasonCode]] = {}
        self._below: dict[str, Callable[[str, Message], ReasonCode]] = {}

    def know(self, part: str, word: str, command: Callable[[], None]) -> None:
        """Execute `command` when `word` is published to the part's topic."""
        self._commands[part, word] = command

    def forget(self, part: str) -> None:
        """Carry out no command of the part any more."""
        self._commands = {key: each for key, each in self._commands.items() if key[0] != part}

    def answer(self, part: str, request: Callable[[Message], ReasonCode]) -> None:
        """Pass messages to the part's topic to `request`, with any payload."""
        self._requests[part] = request

    def answer_below(self, part: str, request: Callable[[str, Message], ReasonCode]) -> None:
        """Pass messages below the part's topic to `request`, with the rest of the topic."""
        self._below[part] = request

    def receive(self, message: Message, topic_filters: list[str]) -> ReasonCode:  # noqa: ARG002 - an inline client's shape
        """Execute a command; an unknown one is refused with 0x83."""
        part = message.topic.removeprefix(CONTROL)
        if part in self._requests:
            return self._requests[part](message)
        first, _, rest = part.partition("/")
        if rest and first in self._below:
            return self._below[first](rest, message)
        word = message.payload.decode(errors="replace")
        command = self._commands.get((part, word))
        if command is None:
            known = ", ".join(" ".join(pair) for pair in self._commands) or "none"
            logger.warning("unknown command %.40r %.40r; there are: %s", part, word, known)
            return ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR
        self.note_order(f"{part} {word}", message.client_id)
        command()
        return ReasonCode.SUCCESS

    def note_order(self, what: str, client_id: str | None) -> None:
        """Log a client's command, and call the listeners."""
        logger.info("%s, requested by client %.80r", what, client_id)
        for listener in self.on_order:
            listener(what, client_id or "")
