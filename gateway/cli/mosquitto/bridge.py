"""Converts a bridge of Mosquitto to an `[[uplink]]`."""

import re
from dataclasses import dataclass, field
from socket import gethostname
from typing import Any

from gateway.cli.mosquitto.lines import Line
from gateway.uplink.rules.targets import overlap

Table = dict[str, Any]

NAME = re.compile(r"[^A-Za-z0-9_-]")
LONGEST_NAME = 16

PLACES = set("{}")
"""Characters with a meaning in templates."""

VERSIONS = {"mqttv31": "3.1.1", "mqttv311": "3.1.1", "mqttv50": "5"}

TEXTS = {
    "remote_username": "username",
    "username": "username",
    "remote_clientid": "client_id",
    "clientid": "client_id",
}
FILES = {
    "bridge_cafile": "ca_file",
    "bridge_certfile": "tls_certificate",
    "bridge_keyfile": "tls_key",
}
NUMBERS = {
    "bridge_max_packet_size": "maximum_packet_size",
    "bridge_max_topic_alias": "topic_alias_maximum",
    "bridge_session_expiry_interval": "session_expiry",
}


OWN_STATE = (
    "nothing is written below $; [uplink.notifications] publishes it on a topic of your own,"
    " and $SYS/broker/tidegate/uplink/state has it on the gateway"
)


class NoPlaceError(Exception):
    """A line without an equivalent; the text says why."""


@dataclass(slots=True)
class Bridge:
    """The lines after `connection` so far."""

    name: str
    line: Line
    keys: Table = field(default_factory=dict)
    addresses: list[str] = field(default_factory=list)
    topics: list[tuple[Line, list[str]]] = field(default_factory=list)
    password: str | None = None
    retain: bool = True
    clean: bool = False
    tls: bool = False
    notifies: str | None = None
    """The topic at the other broker that says whether the link is up."""
    own_state: Line | None = None
    """The line `notifications true`, which without that topic means one below $SYS."""

    def apply(self, line: Line) -> bool:
        """Read a line; return whether it is one of a bridge. Raises NoPlaceError."""
        option, value = line.option, line.value
        if option in ("address", "addresses"):
            self.addresses += value.split()
        elif option == "topic":
            self.topics.append((line, words_of(value)))
        elif option in TEXTS:
            self.keys[TEXTS[option]] = value
        elif option in FILES:
            self.keys[FILES[option]] = value
            self.tls = True
        elif option in NUMBERS:
            self._number(line)
        elif option in ("remote_password", "password"):
            self.password = value
        elif option == "bridge_protocol_version":
            if value not in VERSIONS:
                raise NoPlaceError(f"versions are {', '.join(VERSIONS)}")
            self.keys["mqtt"] = VERSIONS[value]
        elif option == "bridge_outgoing_retain":
            self.retain = is_true(line)
        elif option == "cleansession":
            self.clean = is_true(line)
        elif option == "bridge_tls_use_os_certs":
            self.tls = self.tls or is_true(line)
        else:
            return self._other(line)
        return True

    def _number(self, line: Line) -> None:
        number, name = whole(line), NUMBERS[line.option]
        if name == "maximum_packet_size" and number < 1024:
            raise NoPlaceError("maximum_packet_size is 1,024 bytes at least")
        self.keys[name] = f"{number}s" if name == "session_expiry" else number

    def _other(self, line: Line) -> bool:
        """Accept a line that only confirms the gateway's behaviour."""
        option, value = line.option, line.value
        if option == "start_type":
            if value != "automatic":
                raise NoPlaceError("links are always up; [uplink] schedule bounds when")
        elif option == "notification_topic":
            if value.startswith("$"):
                raise NoPlaceError(OWN_STATE)
            self.notifies = value
        elif option == "notifications":
            self.own_state = line if is_true(line) else None
        elif option == "round_robin":
            if is_true(line):
                raise NoPlaceError("the first address that works is used")
        elif option == "keepalive_interval":
            self.keys["keep_alive"] = max(5, whole(line))
        elif option == "restart_timeout":
            self._restart_timeout(line)
        elif option == "bridge_alpn":
            self.keys["alpn"] = value
        else:
            return False
        return True

    def _restart_timeout(self, line: Line) -> None:
        words = line.value.split()
        if not 1 <= len(words) <= 2 or not all(each.isdigit() and int(each) for each in words):
            raise NoPlaceError("restart_timeout BASE [CAP], in seconds")
        least, most = int(words[0]), int(words[-1])
        self.keys["reconnect"] = {"min": least, "max": max(least, most)}

    def tables(self, place: int, *, only_one: bool) -> tuple[Table, list[tuple[Line, str]]]:
        """Return the `[[uplink]]`, with its tables, and lines without an equivalent."""
        unconverted: list[tuple[Line, str]] = []
        if not self.addresses:
            unconverted.append((self.line, "a bridge without an address"))
        scheme = "mqtts" if self.tls else "mqtt"
        table: Table = {} if only_one else {"name": self.uplink_name}
        urls = [_url(scheme, each) for each in self.addresses or ["localhost"]]
        table["url"] = urls[0] if len(urls) == 1 else list(dict.fromkeys(urls))
        table["client_id"] = f"{gethostname()}.{self.name}"  # as Mosquitto's without clientid
        table |= self.keys
        table["plain"] = True
        table["reports"] = False
        if self.own_state is not None and self.notifies is None:
            unconverted.append((self.own_state, OWN_STATE))
        if self.notifies is not None:
            table["notifications"] = {"topic": self.notifies}
        rules, downs = self._ways(unconverted, "" if only_one else str(place))
        if self.clean and not downs:
            table["session_expiry"] = "0"
        elif self.clean:
            unconverted.append((self.line, "cleansession: the broker's messages wait in a session"))
        table["rule"] = rules or [{"topic": "sensors/#", "where": "FALSE"}]
        if downs:
            table["down"] = downs
        return table, unconverted

    @property
    def uplink_name(self) -> str:
        """Return the bridge's name in a form that is valid for an uplink."""
        return NAME.sub("-", self.name)[:LONGEST_NAME] or "bridge"

    def _ways(
        self, unconverted: list[tuple[Line, str]], place: str
    ) -> tuple[list[Table], list[Table]]:
        rules: list[Table] = []
        downs: list[Table] = []
        for line, words in self.topics:
            try:
                topic = Topic.of(words)
                if topic.direction in ("out", "both"):
                    rules.append(self._rule(topic))
                if topic.direction in ("in", "both"):
                    downs.append(_down(topic))
            except NoPlaceError as error:
                unconverted.append((line, str(error)))
                continue
            if topic.qos > 1:
                unconverted.append((line, "QoS 2: messages go by QoS 1, each once by its number"))
        _give_streams(rules, place)
        return rules, downs

    def _rule(self, topic: "Topic") -> Table:
        rule: Table = {"topic": topic.local_filter}
        rule["target"] = moved(topic.local, topic.remote, topic.pattern, "remote")
        if self.retain:
            rule["retain"] = True
        if topic.qos == 0:
            rule["qos"] = 0
        return rule


@dataclass(frozen=True, slots=True)
class Topic:
    """The words of a `topic` line."""

    pattern: str
    direction: str
    qos: int
    local: str
    remote: str

    @classmethod
    def of(cls, words: list[str]) -> "Topic":
        """Read them; raise NoPlaceError."""
        pattern, direction, qos, local, remote = [*words, *["out", "0", "", ""][len(words) - 1 :]][
            :5
        ]
        if direction not in ("out", "in", "both") or qos not in ("0", "1", "2"):
            raise NoPlaceError("topic PATTERN [out|in|both [0|1|2 [LOCAL-PREFIX [REMOTE-PREFIX]]]]")
        if not pattern + local + remote:
            raise NoPlaceError("a topic without a pattern and prefixes")
        return cls(pattern, direction, int(qos), local, remote)

    @property
    def local_filter(self) -> str:
        """The topic filter here."""
        return self.local + self.pattern

    @property
    def remote_filter(self) -> str:
        """The topic filter at the other broker."""
        return self.remote + self.pattern


def _down(topic: Topic) -> Table:
    down: Table = {"topic": topic.remote_filter}
    local = moved(topic.remote, topic.local, topic.pattern, "local")
    if topic.remote_filter.startswith("$") and local == "{topic}":
        raise NoPlaceError("nothing is written below $")
    if local != "{topic}":
        down["local"] = local
    down["qos"] = min(topic.qos, 1)
    return down


def moved(before: str, after: str, pattern: str, which: str) -> str:
    """Return the template of topics whose prefix `before` becomes `after`; raise NoPlaceError."""
    if PLACES & set(before + after + pattern):
        raise NoPlaceError("braces in topics are placeholders here")
    if not set("+#") & set(pattern):
        target = after + pattern
    elif not before:
        target = after + "{topic}"
    elif before == after:
        target = "{topic}"
    elif not before.endswith("/"):
        raise NoPlaceError(f"the {which} topic is made level by level: end the prefix with /")
    else:
        target = f"{after}{{{before.count('/') + 1}+}}"
    if not target or target.startswith("$"):
        raise NoPlaceError("nothing is written below $")
    return target


def _give_streams(rules: list[Table], place: str) -> None:
    """Give rules different streams if they send the same topics in different ways."""
    base = f"bridge{place}" if place else ""
    streams: list[tuple[str, Table]] = []
    for rule in rules:
        number = 0
        while True:
            stream = f"{base or 'main'}{f'-{number + 1}' if number else ''}"
            if not any(name == stream and _clash(rule, other) for name, other in streams):
                break
            number += 1
        streams.append((stream, rule))
        if stream != "main":
            rule["stream"] = stream


def _clash(rule: Table, other: Table) -> bool:
    """Return whether two rules of a stream could not both send the same topic."""
    return overlap(rule["topic"], other["topic"])


def _url(scheme: str, address: str) -> str:
    host, separator, port = address.rpartition(":")
    if not separator or not port.isdigit():
        return f"{scheme}://{address}:1883"  # Mosquitto's, with TLS as well
    return f"{scheme}://{host}:{port}"


def words_of(value: str) -> list[str]:
    """Return the words of a value, in which a prefix may be written as `""`."""
    return ["" if each == '""' else each for each in value.split()]


def is_true(line: Line) -> bool:
    """Return a line's boolean value; raise NoPlaceError."""
    if line.value.lower() not in ("true", "false", "1", "0"):
        raise NoPlaceError("true or false")
    return line.value.lower() in ("true", "1")


def whole(line: Line) -> int:
    """Return the whole number of a line; raise NoPlaceError."""
    try:
        return int(line.value)
    except ValueError:
        raise NoPlaceError("a whole number") from None
