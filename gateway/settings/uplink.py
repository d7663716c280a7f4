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
    """What is sent to the fleet; by default `sensors/#`. In a stream the first match counts."""

    topic: str = key(
        unshared_filter,
        "topic filter",
    )
    where: str | None = key(
        rule_expression,
        "must be TRUE; may [remember earlier messages](where.md#functions-that-remember)",
        None,
    )
    stream: str = key(
        stream,
        "a message has a number in each stream",
        "main",
    )
    lane: str = key(
        one_of("live", "backlog"),
        "`backlog`: after all live messages",
        "live",
    )
    target: str | None = key(
        topic_template,
        "topic at the fleet, with [placeholders](fleet.md#targets)",
        None,
        shown="`tidegate/{gateway}/data/{topic}`",
    )
    retain: bool = key(
        boolean,
        "retained messages are retained at the fleet, too",
        default=False,
    )
    qos: int = key(
        whole_number(0, 1),
        "at 0 a message is deleted once it is sent, and [may be lost](fleet.md#targets)",
        1,
    )
    commit_within: float | None = key(
        duration(0, 60),
        "as in `[uplink]`",
        None,
        shown="the uplink's",
    )
    uplink: tuple[str, ...] = key(
        uplink_names,
        "the [uplinks](fleet.md#several-uplinks) that get the messages",
        (),
        shown="the one above it",
    )

    @property
    def way(self) -> tuple[str | None, bool, int]:
        """How the messages go up: one topic of a stream goes one way."""
        return self.target, self.retain, self.qos


@settings_class
class DownSettings:
    """Messages from the fleet, published here; the first match counts."""

    topic: str = key(
        unshared_filter,
        "topic filter at the fleet; `{gateway}` is the id",
    )
    local: str = key(
        topic_template,
        "topic here",
        "{topic}",
    )
    qos: int = key(
        whole_number(0, 1),
        "at 1 each message is published once, also after restarts",
        1,
    )
    username: str | None = key(
        text,
        "publish only what this user [may write](access.md)",
        None,
        shown="all but topics that begin with `$`",
    )


@settings_class
class ReconnectSettings:
    """How long the gateway waits before it connects again."""

    minimum: float = key(
        duration(0.1, 3_600),
        "before the second attempt; then twice as long each time",
        1.0,
        name="min",
    )
    maximum: float = key(
        duration(0.1, 86_400),
        "longest wait",
        10.0,
        name="max",
    )

    def mistakes(self, _given: frozenset[str]) -> Iterator[Mistake]:
        """Yield what does not go together."""
        if self.minimum > self.maximum:
            yield "min", self.minimum, f"at most max, which is {self.maximum:g} s"


@settings_class
class NotificationSettings:
    """A message on each connection and a will, as of Mosquitto's bridges.

    They replace the gateway's status, so they need `reports = false`.
    """

    topic: str = key(
        topic_template,
        "topic at the fleet; `{gateway}` is the id",
    )
    online: str = key(
        text,
        "payload while the link is up",
        "1",
    )
    offline: str = key(
        text,
        "payload of the will",
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
    """The fleet's broker or a directory, up to 8 as `[[uplink]]`; without one nothing is sent."""

    name: str | None = key(
        stream,
        "name in `$SYS`, log and [rules](fleet.md#several-uplinks); required for several",
        None,
    )
    urls: tuple[str, ...] = key(
        fleet_urls,
        "the fleet's broker, path `/mqtt` by default; the first [of "
        "several](fleet.md#several-addresses) that works",
        (),
        name="url",
    )
    mqtt: str = key(
        one_of(AUTO, MQTT_5, MQTT_3_1_1),
        "version; `auto`: 5, with `batch` or `plain` [3.1.1 if it is "
        "refused](fleet.md#loop-prevention)",
        AUTO,
    )
    directory: str | None = key(
        text,
        "where records are written without a `url`",
        None,
        shown="`landing` in the data folder",
    )
    landing_maximum_bytes: int = key(
        size_from(64 * 1024 * 1024),
        "disk for the [landing files](#landing-files)",
        1024 * 1024 * 1024,
    )
    landing_maximum_age: int = key(
        seconds(),
        "age at which one is deleted; 0: never",
        0,
    )
    landing_when_full: str = key(
        one_of(DELETE, WAIT),
        "[what happens](#landing-files) then",
        DELETE,
    )
    landing_interval: float | None = key(
        duration(1, 3_600),
        "how long messages [are collected](#landing-files); also the shortest interval of the "
        "[ledger](../understand/fleet-interface.md#ledger)",
        None,
        shown="`0.5`",
    )
    username: str | None = key(
        text,
        "user name",
        None,
    )
    username_file: str | None = key(
        readable_file,
        "file with it, instead",
        None,
    )
    password_file: str | None = key(
        readable_file,
        "file with the password; also [`credential:NAME`](#the-fleets-broker), as for other files",
        None,
    )
    ca_file: str | None = key(
        readable_file,
        "trusted authorities",
        None,
        shown="the system's",
    )
    tls_certificate: str | None = key(
        readable_file,
        "the gateway's certificate, then intermediate ones",
        None,
    )
    tls_key: str | None = key(
        readable_file,
        "its private key",
        None,
        shown="in the same file",
    )
    alpn: tuple[str, ...] = key(
        protocols,
        "protocols for ALPN, such as `x-amzn-mqtt-ca`",
        (),
    )
    proxy: str | None = key(
        proxy_url,
        "a [proxy](fleet.md#through-a-proxy); needs the extra `proxy`",
        None,
    )
    proxy_credentials_file: str | None = key(
        readable_file,
        "file with `USER:PASSWORD` for the proxy",
        None,
    )
    client_id: str | None = key(
        text,
        "client identifier",
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
        "send the publishers' client identifiers and user names",
        default=False,
    )
    window: int = key(
        whole_number(1, 65_535),
        "unacknowledged messages, or eight full batches if that is more",
        1_000,
    )
    commit_within: float = key(
        duration(0, 60),
        "wait for the fleet's acknowledgement before a message "
        "[is written](../understand/durability.md#messages-for-the-fleet)",
        0.25,
    )
    keep_alive: int = key(
        seconds(5, 65_535),
        "silence before PINGREQ; the broker's Server Keep Alive replaces it",
        30,
    )
    reconnect: ReconnectSettings = table(ReconnectSettings)
    puback_timeout: int = key(
        seconds(1),
        "wait for a PUBACK; then the gateway reconnects",
        30,
    )
    session_expiry: int = key(
        seconds(0, NEVER),
        'Session Expiry Interval; `"0"`: clean starts',
        86_400,
    )
    reject_after_ends: int = key(
        whole_number(0, 100),
        "connections that a message may end until it is "
        "[rejected](fleet.md#rejected-messages); 0: never",
        3,
    )
    retry_refused_for: int = key(
        seconds(),
        "how long a refused message is tried until then",
        21_600,
    )
    topic_alias_maximum: int = key(
        whole_number(0, 65_535),
        "topic aliases that the uplink sets",
        128,
    )
    maximum_packet_size: int | None = key(
        size(1024, 256 * 1024 * 1024),
        "largest packet [from the broker](fleet.md#messages-that-are-too-large)",
        None,
        shown="that of `[broker]`",
    )
    maximum_packet_size_out: int | None = key(
        size(128, 256 * 1024 * 1024),
        "largest packet, if the broker states none; larger ones are "
        "[rejected](fleet.md#rejected-messages)",
        None,
    )
    maximum_topic_bytes: int = key(
        size(1, 65_535),
        "longest topic; longer ones are [rejected](fleet.md#topics-that-are-too-long)",
        65_535,
    )
    maximum_topic_levels: int | None = key(
        whole_number(1, 65_535),
        "levels of a topic, likewise",
        None,
    )
    backlog_messages_per_second: int | None = key(
        whole_number(1, 1_000_000),
        "highest [rate of the backlog](fleet.md#pacing)",
        None,
    )
    backlog_bytes_per_second: int | None = key(
        size_from(256),
        "the same in bytes",
        None,
    )
    batch: str | None = key(
        one_of("zlib"),
        "send small messages [together](../understand/fleet-interface.md#batches), compressed",
        None,
    )
    plain: bool = key(
        boolean,
        "permit MQTT 3.1.1, where messages are [without their numbers](fleet.md#plain-messages)",
        default=False,
    )
    batch_messages: int = key(
        whole_number(2, 10_000),
        "messages of a full batch",
        500,
    )
    batch_bytes: int = key(
        size_from(1024),
        "bytes of a full batch, before compression",
        64 * 1024,
    )
    batch_delay: float = key(
        duration(0.01, 60),
        "how long a batch waits for more",
        0.2,
    )
    schedule: tuple[str, ...] = key(
        windows,
        "[when the link may be up](#schedule-and-budget)",
        (),
    )
    budget: int | None = key(
        bytes_a_day,
        "bytes that the link may carry [a day](#schedule-and-budget)",
        None,
    )
    recall: bool = key(
        boolean,
        "the fleet may [request messages of the history](../understand/fleet-interface.md#recall)",
        default=False,
    )
    reports: bool = key(
        boolean,
        "send state, clock records and ledger; not to a [service](../start/presets.md)",
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
            allowed = 'a time such as "1d" with down: messages from the fleet wait in the session'
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
