"""The topics that begin with `$`: those that clients may write, and guarded ones."""

import re
from typing import AnyStr

CONTROL = "$CONTROL/tidegate/"
"""Below this are commands and queries to the gateway (docs/use/configuration.md)."""

OWN_MESSAGES = re.compile(re.escape(CONTROL) + r"channel/[^/]+/(touch|requeue)")
"""A command for the messages that a consumer has itself, which needs no right."""

DELAY = "$delay/"
"""Below this clients publish delayed messages (docs/use/channels.md)."""

MAXIMUM_DELAY = 7 * 24 * 3600
"""Seconds of the longest delay: a week."""

DELAY_FAULT = f"is not {DELAY}<seconds, 1 to {MAXIMUM_DELAY}>/<topic without $>"

LOG = "$SYS/broker/tidegate/log"
"""The gateway's log lines, which name clients, users and addresses (docs/operate/sys-topics.md)."""


LONGEST = "$SYS/broker/tidegate/turns/longest"
"""What the longest turn served: a client or an address."""


LARGEST = "$SYS/broker/tidegate/shares/largest"
"""The largest holders of common resources: clients, users and addresses."""

QUEUE_FULL = "$SYS/broker/tidegate/alarm/queue_full"
"""Clients that lose messages."""

CONNECTION = "$SYS/broker/connection/"
STATE = "/state"
"""Prefix and suffix of a client's identifier in the topic where a bridge reports whether it is
connected. Only the bridge may write it, whatever the rules, as in Mosquitto."""

NOWHERE = "\0"
"""The mount point of a client that can have none: no topic begins with it."""

_NO_LEVEL = frozenset("/+#")

_NAMING = (LOG, LONGEST, LARGEST, QUEUE_FULL)


def may_publish(topic: str) -> bool:
    """Return whether any client may write the topic: `$` topics are the gateway's own."""
    return not topic.startswith("$") or topic.startswith((CONTROL, DELAY))


def is_state_of(topic: str, client_id: str) -> bool:
    """Return whether a bridge reports there whether it is connected, which needs no rule.

    The topic is that of Mosquitto's bridges, with their client identifier here.
    """
    return topic == f"{CONNECTION}{client_id}{STATE}"


def undelayed(topic: str) -> str:
    """Return the topic inside `$delay/<seconds>/<topic>`; any other topic unchanged."""
    return topic.split("/", 2)[-1] if topic.startswith(DELAY) else topic


def delay_of(topic: str) -> int | None:
    """Return the seconds by which a topic delays messages; None if it does not, or is invalid."""
    if not topic.startswith(DELAY):
        return None
    seconds, _, rest = topic.removeprefix(DELAY).partition("/")
    if not rest or rest.startswith("$") or not (seconds.isascii() and seconds.isdecimal()):
        return None
    return int(seconds) if len(seconds) < 8 and 1 <= int(seconds) <= MAXIMUM_DELAY else None


def mounted(topic: str, prefix: str) -> str:
    """Return a topic as a client with this mount point means it."""
    return prefixed(topic, prefix, DELAY)


def prefixed(topic: AnyStr, prefix: AnyStr, before: AnyStr) -> AnyStr:
    """Return the topic behind the prefix, which follows `before` and one level more."""
    if not topic.startswith(before):
        return prefix + topic
    end = topic.find(before[-1:], len(before)) + 1
    # without that level it is wrong, and refused as it is
    return topic[:end] + prefix + topic[end:] if 0 < end < len(topic) else topic


def mount_prefix(mount_point: str, username: str | None, client_id: str) -> str:
    """Return the mount point of a client; NOWHERE if its names cannot be a part of a topic.

    A `/` in a name would lead into another client's part.
    """
    for place, name in (("%u", username or ""), ("%c", client_id)):
        if place in mount_point and (not name or set(name) & _NO_LEVEL):
            return NOWHERE
    prefix = mount_point.replace("%c", "\0").replace("%u", username or "")
    prefix = prefix.replace("\0", client_id)
    return NOWHERE if prefix.startswith("$") else prefix


def is_guarded(topic: str) -> bool:
    """Return whether the topic is only for named users and clients of this machine.

    Topic filters are checked, too: those that match only guarded topics are guarded.
    """
    if topic in _NAMING or topic.startswith(LOG + "/"):
        return True
    return topic.partition("/")[0] == "$CONTROL"
