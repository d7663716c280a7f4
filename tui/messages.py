"""What the connection's thread tells the application; messages of the broker take the inbox."""

from textual.message import Message

from tui.link import Link


class LinkChanged(Message):
    """The connection to the gateway came up, was lost or is tried again."""

    def __init__(self, link: Link) -> None:
        super().__init__()
        self.link = link


class SubscriptionRefused(Message):
    """The gateway does not let us hear a topic filter, for this reason."""

    def __init__(self, topic_filter: str, reason: str) -> None:
        super().__init__()
        self.topic_filter = topic_filter
        self.reason = reason


class OrderAnswered(Message):
    """The gateway acknowledged an order for its uplink; `refusal` is empty if it took it."""

    def __init__(self, refusal: str) -> None:
        super().__init__()
        self.refusal = refusal
