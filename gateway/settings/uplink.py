"""The fleet's broker: `[uplink]`."""

from collections.abc import Iterator

from gateway.settings.broker import NEVER
from gateway.settings.checks import (
    boolean,
    fleet_urls,
    one_of,
    protocols,
    proxy_url,
    readable_file,
    rule_expression,
    stream,
    text,
    topic_prefix,
    topic_template,
    unshared_filter,
    uplink_names,
    whole_number,
    windows,
)
from gateway.settings.declaration import Mistake, key, settings_class, table, tables
from gateway.settings.outbox import StreamSettings
from gateway.settings.quantities import bytes_a_day, duration, seconds, size, size_from

PACKET_BYTES = 4 * 1024 * 1024
"""Bytes of the largest packet that comes down, without another bound."""

DELETE, WAIT = "delete-oldest", "wait"

AUTO, MQTT_5, MQTT_3_1_1 = "auto", "5", "3.1.1"

WITH_TLS = ("mqtts:", "wss:")

ONLY_WITH_URL = (
    *("batch", "schedule", "budget"),
    *("maximum_packet_size", "maximum_topic_bytes", "maximum_topic_levels"),
    *("reject_after_ends", "retry_refused_for", "mqtt", "alpn", "proxy", "keep_alive"),
    *("reconnect", "notifications", "maximum_packet_size_out"),
)
"""Keys without a meaning for a directory."""


@settings_class
class RuleSettings:
    """What is sent to the fleet: messages on `topic` for which `where` is TRUE.

    Without any rule it is `sensors/#`. Within a stream the rules are evaluated in order, and the
    first whose `where` is TRUE takes the message.
    """

    topic: str = key(
        unshared_filter,
        "topic filter",
    )
    where: str | None = key(
        rule_expression,
        "an expression, which may [remember earlier "
        "messages](where.md#functions-that-remember); it must be TRUE",
        None,
    )
    stream: str = key(
        stream,
        "a message gets a number in each stream that has a rule for its topic",
        "main",
    )
    lane: str = key(
        one_of("live", "backlog"),
        "`backlog`: after all live messages",
        "live",
    )
    target: str | None = key(
        topic_template,
        "topic at the fleet's broker: `{gateway}` is the gateway id, `{topic}` the local topic, "
        "`{2}` its second level, `{2+}` its levels from the second on",
        None,
        shown="`tidegate/{gateway}/data/{topic}`",
    )
    retain: bool = key(
        boolean,
        "retained messages are retained at the fleet's broker, too",
        default=False,
    )
    qos: int = key(
        whole_number(0, 1),
        "QoS at the fleet; at 0 messages are deleted once they are sent, and [may be "
        "lost](fleet.md#targets)",
        1,
    )
    commit_within: float | None = key(
        duration(0, 60),
        "`commit_within` of these messages",
        None,
        shown="the uplink's",
    )
    uplink: tuple[str, ...] = key(
        uplink_names,
        "names of the [uplinks](fleet.md#several-uplinks) that get the messages",
        (),
        shown="the one above it",
    )

    @property
    def way(self) -> tuple[str | None, bool, int]:
        """How the messages go up: one topic of a stream goes one way."""
        return self.target, self.retain, self.qos


@settings_class
class DownSettings:
    """Messages from the fleet's broker on `topic`, published here as `local`.

    The first table whose `topic` matches takes the message.
    """

    topic: str = key(
        unshared_filter,
        "topic filter at the fleet's broker; `{gateway}` is the gateway id",
    )
    local: str = key(
        topic_template,
        "the local topic; `{gateway}`, `{topic}`, and of the fleet's topic the level `{2}`, or "
        "`{3+}` with all after it",
        "{topic}",
    )
    qos: int = key(
        whole_number(0, 1),
        "QoS of the subscription; with 1 each message is published once, also after restarts",
        1,
    )
    username: str | None = key(
        text,
        "publish only what this user may write by the [access rules](access.md)",
        None,
        shown="everything but topics that begin with `$`",
    )


@settings_class
class ReconnectSettings:
    """How long the gateway waits before it connects again, such as `{ min = "5s", max = "2m" }`."""

    minimum: float = key(
        duration(0.1, 3_600),
        "before the second attempt; each further wait is twice as long",
        1.0,
        name="min",
    )
    maximum: float = key(
        duration(0.1, 86_400),
        "before any attempt",
        10.0,
        name="max",
    )

    def mistakes(self, _given: frozenset[str]) -> Iterator[Mistake]:
        """Yield what does not go together."""
        if self.minimum > self.maximum:
            yield "min", self.minimum, f"at most max, which is {self.maximum:g} s"


@settings_class
class NotificationSettings:
    """A message on each connection, and the will, like those of Mosquitto's bridges.

    They replace the gateway's own status, so they need `reports = false`.
    """

    topic: str = key(
        topic_template,
        "topic at the fleet's broker; `{gateway}` is the gateway id",
    )
    online: str = key(
        text,
        "the payload while the link is up",
        "1",
    )
    offline: str = key(
        text,
        "the payload of the will",
        "0",
    )
    retain: bool = key(
        boolean,
        "both are retained",
        default=True,
    )

    def mistakes(self, _given: frozenset[str]) -> Iterator[Mistake]:
        """Yield what does not go together."""
        if "{" in self.topic.replace("{gateway}", ""):
            yield "topic", self.topic, "a topic with no placeholder but {gateway}"


@settings_class
class UplinkSettings:
    """The fleet's broker or a directory; without the section nothing is sent.

    There may be up to 8, as `[[uplink]]`, each with a name.
    """

    name: str | None = key(
        stream,
        "name in `$SYS`, the log and [rules](fleet.md#several-uplinks); required if there are "
        "several",
        None,
    )
    urls: tuple[str, ...] = key(
        fleet_urls,
        "the fleet's broker (WebSocket's path is `/mqtt` by default), with MQTT 5, or with "
        "`batch` or `plain` 3.1.1; of [several](fleet.md#several-addresses) the first that "
        "works is used",
        (),
        name="url",
    )
    mqtt: str = key(
        one_of(AUTO, MQTT_5, MQTT_3_1_1),
        "version of MQTT for the fleet's broker; `auto`: 5, and [3.1.1 if it is "
        "refused](fleet.md#loop-prevention)",
        AUTO,
    )
    directory: str | None = key(
        text,
        "where records are written when there is no `url`",
        None,
        shown="`landing` in the data folder",
    )
    landing_maximum_bytes: int = key(
        size_from(64 * 1024 * 1024),
        "bytes of disk for the [landing files](#landing-files) of this gateway",
        1024 * 1024 * 1024,
    )
    landing_maximum_age: int = key(
        seconds(),
        "age at which a landing file is deleted",
        0,
        shown='`"0"`, no bound',
    )
    landing_when_full: str = key(
        one_of(DELETE, WAIT),
        "what happens at `landing_maximum_bytes`: the oldest files are deleted, or messages "
        "wait in the outbox",
        DELETE,
    )
    landing_interval: float | None = key(
        duration(1, 3_600),
        "how long messages are collected, up to 1,000, before they are written to [landing "
        "files](#landing-files); also the shortest interval of the [ledger](fleet.md#ledger)",
        None,
        shown="`0.5`",
    )
    username: str | None = key(
        text,
        "user name for the fleet's broker",
        None,
    )
    username_file: str | None = key(
        readable_file,
        "a file with the user name, in place of `username`",
        None,
    )
    password_file: str | None = key(
        readable_file,
        "a file with the password; `credential:NAME` is a [systemd "
        "credential](#the-fleets-broker), here and for other files",
        None,
    )
    ca_file: str | None = key(
        readable_file,
        "trusted authorities for `mqtts://` and `wss://`",
        None,
        shown="the system's",
    )
    tls_certificate: str | None = key(
        readable_file,
        "the gateway's certificate for the fleet's broker, and intermediate certificates",
        None,
    )
    tls_key: str | None = key(
        readable_file,
        "the certificate's private key",
        None,
        shown="in the same file",
    )
    alpn: tuple[str, ...] = key(
        protocols,
        "protocols that TLS names (ALPN), such as `x-amzn-mqtt-ca` for AWS IoT at port 443",
        (),
    )
    proxy: str | None = key(
        proxy_url,
        "a [proxy](fleet.md#through-a-proxy) for the link; needs the extra `proxy`",
        None,
    )
    proxy_credentials_file: str | None = key(
        readable_file,
        "a file with `USER:PASSWORD` for the proxy",
        None,
    )
    client_id: str | None = key(
        text,
        "client identifier at the fleet's broker",
        None,
        shown="`tidegate-<id>`",
    )
    prefix: str = key(
        topic_prefix,
        "first levels of the fleet's topics",
        "tidegate",
    )
    identity: bool = key(
        boolean,
        "send the publisher's client identifier and user name to the fleet",
        default=False,
    )
    window: int = key(
        whole_number(1, 65_535),
        "unacknowledged messages, or eight full batches if that is more; also at most the "
        "broker's Receive Maximum",
        1_000,
    )
    commit_within: float = key(
        duration(0, 60),
        "seconds that a publisher's acknowledgement may wait for the fleet's before the message "
        "is [written](../understand/durability.md#messages-for-the-fleet); 0 to write each",
        0.25,
    )
    keep_alive: int = key(
        seconds(5, 65_535),
        "seconds without a packet before PINGREQ; the broker's Server Keep Alive replaces it",
        30,
    )
    reconnect: ReconnectSettings = table(ReconnectSettings)
    puback_timeout: int = key(
        seconds(1),
        "time without a PUBACK after which the gateway reconnects",
        30,
    )
    session_expiry: int = key(
        seconds(0, NEVER),
        'Session Expiry Interval at the fleet\'s broker; `"0"` for clean starts',
        86_400,
    )
    reject_after_ends: int = key(
        whole_number(0, 100),
        "connections that one message may end before it is "
        "[rejected](fleet.md#rejected-messages); 0 for never",
        3,
    )
    retry_refused_for: int = key(
        seconds(),
        "how long a [refused](fleet.md#rejected-messages) or too large message is tried again "
        "before it is rejected",
        21_600,
    )
    topic_alias_maximum: int = key(
        whole_number(0, 65_535),
        "topic aliases that the uplink sets, at most what the broker accepts; 0 for none",
        128,
    )
    maximum_packet_size: int | None = key(
        size(1024, 256 * 1024 * 1024),
        "bytes of a packet from the fleet's broker; [larger "
        "ones](fleet.md#messages-that-are-too-large) are dropped",
        None,
        shown="that of `[broker]`",
    )
    maximum_packet_size_out: int | None = key(
        size(128, 256 * 1024 * 1024),
        "bytes of the largest packet for the broker, if it does not send its maximum; a larger "
        "message is [rejected](fleet.md#rejected-messages)",
        None,
        shown="no bound",
    )
    maximum_topic_bytes: int = key(
        size(1, 65_535),
        "bytes of the longest topic that the broker accepts; a longer one is "
        "[rejected](fleet.md#topics-that-are-too-long)",
        65_535,
    )
    maximum_topic_levels: int | None = key(
        whole_number(1, 65_535),
        "levels of such a topic",
        None,
        shown="no bound",
    )
    backlog_messages_per_second: int | None = key(
        whole_number(1, 1_000_000),
        "upper bound of the [backlog's rate](fleet.md#pacing)",
        None,
        shown="no bound",
    )
    backlog_bytes_per_second: int | None = key(
        size_from(256),
        "the same in bytes",
        None,
        shown="no bound",
    )
    batch: str | None = key(
        one_of("zlib"),
        "small messages are sent [together](fleet.md#batches), compressed",
        None,
    )
    plain: bool = key(
        boolean,
        "with MQTT 3.1.1, messages are sent [without their numbers](fleet.md#plain-messages)",
        default=False,
    )
    batch_messages: int = key(
        whole_number(2, 10_000),
        "messages at which a batch is full",
        500,
    )
    batch_bytes: int = key(
        size_from(1024),
        "bytes before compression at which it is full",
        64 * 1024,
    )
    batch_delay: float = key(
        duration(0.01, 60),
        "seconds after its first message at which it is sent",
        0.2,
    )
    schedule: tuple[str, ...] = key(
        windows,
        '[when the link may be up](#schedule-and-budget), such as `["0 2 * * * for '
        '30m"]`; without it always',
        (),
    )
    budget: int | None = key(
        bytes_a_day,
        "bytes [a day](#schedule-and-budget) that the link may carry",
        None,
    )
    recall: bool = key(
        boolean,
        "the fleet may [request messages of the history](fleet.md#recall) at its own broker",
        default=False,
    )
    reports: bool = key(
        boolean,
        "send state, clock records and ledger to the fleet; `false` for a "
        "[service](../start/presets.md) that only accepts messages",
        default=True,
    )
    notifications: NotificationSettings | None = table(NotificationSettings, default=None)
    rules: tuple[RuleSettings, ...] = tables(RuleSettings, name="rule")
    streams: tuple[StreamSettings, ...] = tables(StreamSettings, name="stream")
    down: tuple[DownSettings, ...] = tables(DownSettings, name="down")

    # of this run, and of other tables
    gateway_id: str = ""
    epoch: str = ""
    previous_epoch: str = ""
    version: str = ""
    targets: tuple[RuleSettings, ...] = ()  # of the rules, none if no rule has one

    @property
    def url(self) -> str | None:
        """The first address of the fleet's broker, None for a directory."""
        return self.urls[0] if self.urls else None

    @property
    def fleet_client_id(self) -> str:
        """The client identifier at the fleet's broker."""
        return self.client_id or f"tidegate-{self.gateway_id}"

    @property
    def announces(self) -> bool:
        """Whether a message and the will say that the link is up."""
        return self.reports or self.notifications is not None

    @property
    def status_topic(self) -> str:
        """The fleet's topic on which they do."""
        if self.notifications is None:
            return self.topic("status")
        return self.notifications.topic.replace("{gateway}", self.gateway_id)

    @property
    def status_retained(self) -> bool:
        """Whether they are retained."""
        return self.notifications is None or self.notifications.retain

    @property
    def packet_bytes(self) -> int:
        """Bytes of the largest packet that the fleet's broker may send."""
        return self.maximum_packet_size or PACKET_BYTES

    def topic(self, suffix: str) -> str:
        """Return the fleet's topic of this gateway that ends with `suffix`."""
        return f"{self.prefix}/{self.gateway_id}/{suffix}"

    def mistakes(self, given: frozenset[str]) -> Iterator[Mistake]:
        """Yield conflicts between the keys that are `given`, and of their tables."""
        if {"urls", "directory"} <= given:
            yield "directory", self.directory, "either url or directory, not both"
        for name in ONLY_WITH_URL:
            if self.url is None and name in given:
                yield name, getattr(self, name), "only with url"
        yield from self._mistakes_of_version()
        yield from self._mistakes_of_link(given)
        if self.tls_key is not None and self.tls_certificate is None:
            yield "tls_key", self.tls_key, "only with tls_certificate"
        if {"username", "username_file"} <= given:
            yield "username_file", self.username_file, "either username or username_file"
        for name in (each for each in given if each.startswith("landing_")):
            if self.url is not None:
                yield name, getattr(self, name), "only without url"
        if self.down and self.url is None:
            yield "down", self.down[0].topic, "only with url"
        if self.down and not self.session_expiry:
            allowed = 'a time such as "1d" with down: what comes down waits in the session'
            yield "session_expiry", self.session_expiry, allowed

    def _mistakes_of_link(self, given: frozenset[str]) -> Iterator[Mistake]:
        """Yield what does not go together of the keys for connections."""
        for name in ("tls_certificate", "alpn"):
            if name in given and not any(each.startswith(WITH_TLS) for each in self.urls):
                value = getattr(self, name)
                shown = list(value) if isinstance(value, tuple) else value
                yield name, shown, "only with mqtts:// or wss:// in url"
        if self.proxy_credentials_file is not None and self.proxy is None:
            yield "proxy_credentials_file", self.proxy_credentials_file, "only with proxy"
        if self.notifications is not None and self.reports:
            allowed = "only with reports = false: a connection has one will, which is the status's"
            yield "notifications", self.notifications.topic, allowed

    def _mistakes_of_version(self) -> Iterator[Mistake]:
        """Yield conflicts of the keys for brokers without user properties."""
        if self.plain and self.batch:
            yield "plain", self.plain, "either batch or plain"
        if self.mqtt == MQTT_3_1_1 and not self.plain and self.batch is None:
            yield "mqtt", self.mqtt, "only with batch or plain: no message there has its number"
