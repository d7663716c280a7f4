"""The topics that begin with `$`: which of them clients may write, and which are guarded."""

CONTROL = "$CONTROL/tidegate/"
"""Below this clients ask the gateway itself for something (docs/configuration.md)."""

DELAY = "$delay/"
"""Below this clients publish what is to be published later (docs/channels.md)."""

MAXIMUM_DELAY = 7 * 24 * 3600
"""Seconds of the longest delay: a week."""

DELAY_FAULT = f"is not {DELAY}<seconds, 1 to {MAXIMUM_DELAY}>/<topic without $>"

LOG = "$SYS/broker/tidegate/log"
"""The gateway's log lines, which name clients, users and addresses (docs/sys-topics.md)."""


LONGEST = "$SYS/broker/tidegate/turns/longest"
"""Whom the longest turn served: a client or an address."""


LARGEST = "$SYS/broker/tidegate/shares/largest"
"""Who holds most of what the gateway has for all: clients, users and addresses."""

QUEUE_FULL = "$SYS/broker/tidegate/alarm/queue_full"
"""Which clients lose messages."""

CONNECTION = "$SYS/broker/connection/"
STATE = "/state"
"""Before and behind a client's identifier, where a bridge says whether it is connected. Nobody else
may write it, and it may whatever rules say, as in Mosquitto."""

_NAMING = (LOG, LONGEST, LARGEST, QUEUE_FULL)


def may_publish(topic: str) -> bool:
    """Return whether any client may write the topic: `$` topics are the gateway's own."""
    return not topic.startswith("$") or topic.startswith((CONTROL, DELAY))


def is_state_of(topic: str, client_id: str) -> bool:
    """Return whether a bridge says there whether it is connected, which it may by itself.

    It is where Mosquitto's bridges do, with the client identifier that they have here.
    """
    return topic == f"{CONNECTION}{client_id}{STATE}"


def undelayed(topic: str) -> str:
    """Return the topic that stands in `$delay/<seconds>/<topic>`; any other as it is."""
    return topic.split("/", 2)[-1] if topic.startswith(DELAY) else topic


def delay_of(topic: str) -> int | None:
    """Return the seconds by which a topic puts messages off; None if it does not, or is wrong."""
    if not topic.startswith(DELAY):
        return None
    seconds, _, rest = topic.removeprefix(DELAY).partition("/")
    if not rest or rest.startswith("$") or not (seconds.isascii() and seconds.isdecimal()):
        return None
    return int(seconds) if len(seconds) < 8 and 1 <= int(seconds) <= MAXIMUM_DELAY else None


def is_guarded(topic: str) -> bool:
    """Return whether the topic is closed to all but named users and clients of this machine.

    Topic filters are asked about, too: those that match guarded topics alone are guarded.
    """
    if topic in _NAMING or topic.startswith(LOG + "/"):
        return True
    return topic.partition("/")[0] == "$CONTROL"
