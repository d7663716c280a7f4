"""What `w` explains: the topic, client, queue or rule that a row is about."""

import re
from typing import NamedTuple

from tui.queries import Document

CLIENT_EVENTS = ("refused", "ended", "flapping", "shared", "denied")
"""kinds of events whose subject is a client identifier"""
OTHERS = "others"
"""the subject of an event of clients that are counted together"""
NOBODY = ("", OTHERS, "without identifier")
"""subjects of such events that are no identifier"""
CLIENT = re.compile(r"\bclient (['\"])([^\\]+?)\1")
UPLINK = re.compile(r"^uplink(?: (?!to )([^\s:]+))?:")
DOWN = re.compile(
    r"^(['\"])([^\\]+?)\1 (?:came from the fleet|was not received from|from the fleet)"
)
"""how texts of the gateway name a client, an uplink, and the topic of a message from the fleet"""


class Subject(NamedTuple):
    """A `kind` of topic, client, queue or rule, and the name by which queries know it."""

    kind: str
    name: str


def subject_of_queue(row: Document) -> Subject:
    """Return the queue of a row of the query `queues`; for a session its client."""
    if row.get("kind") == "session":
        return Subject("client", str(row.get("name")))
    return Subject("queue", f"{row.get('kind')} {row.get('name')}")


def subject_of_reading(row: Document) -> Subject:
    """Return the topic on which a bridge publishes a reading."""
    levels = (str(row.get(key) or "") for key in ("node", "quantity", "instance"))
    return Subject("topic", "/".join(["sensors", *filter(None, levels)]))


def subject_of_event(row: Document) -> Subject | str:
    """Return what an event is about, or why that cannot be explained."""
    kind, subject = row.get("kind"), str(row.get("subject") or "")
    if kind in CLIENT_EVENTS and subject not in NOBODY:
        return Subject("client", subject)
    if kind == "link":
        return Subject("queue", f"uplink {subject.removeprefix('uplink').strip()}")
    return subject_of_words(subject, str(row.get("text") or ""))


def subject_of_words(*texts: str) -> Subject | str:
    """Return the client, uplink or topic that texts of the gateway name, or that there is none."""
    for each in texts:
        if found := CLIENT.search(each):
            return Subject("client", found[2])
        if found := UPLINK.match(each):
            return Subject("queue", f"uplink {found[1] or ''}")
        if found := DOWN.match(each):
            return Subject("topic", found[2])
    return "why: this line names no client, uplink or topic"
