"""What comes down from the fleet: `[[uplink.down]]`."""

from dataclasses import dataclass

from gateway.config.checks import text, topic_template, unshared_filter, whole_number
from gateway.config.declaration import key


@dataclass(frozen=True, slots=True)
class DownConfig:
    """What comes down from the fleet's broker: messages on `topic`, published as `local`.

    The first table whose `topic` matches takes the message.
    """

    topic: str = key(
        unshared_filter,
        "topic filter at the fleet's broker, in which `{gateway}` is the gateway id",
    )
    local: str = key(
        topic_template,
        "the topic on which it is published here; `{gateway}`, `{topic}`, and of the fleet's "
        "topic the level `{2}`, or `{3+}` with all behind it",
        "{topic}",
    )
    qos: int = key(
        whole_number(0, 1),
        "QoS at which it is subscribed to; with 1 each message comes once, also after restarts",
        1,
    )
    username: str | None = key(
        text,
        "publish only what this user may write by the [access rules](access.md)",
        None,
        shown="everything but topics that begin with `$`",
    )
