"""Read a configuration file; every mistake names file, key, value and what is allowed."""

import re
import socket
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from gateway.config import schema
from gateway.config.checks import gateway_id
from gateway.config.errors import ConfigurationError
from gateway.config.listener import find_mistake
from gateway.config.metrics import find_metrics_mistake
from gateway.config.settings import (
    AccessConfig,
    BrokerConfig,
    Configuration,
    DurabilityConfig,
    HistoryConfig,
    ListenerConfig,
    MemoryConfig,
    MetricsConfig,
    OutboxConfig,
    RoleConfig,
    RuleConfig,
    SerialConfig,
    SimulatorConfig,
    StorageConfig,
    StreamConfig,
    SubscriptionFilterConfig,
    UplinkConfig,
)
from gateway.config.stream import find_stream_mistake


def load(path: Path) -> Configuration:
    """Return the checked configuration; raise ConfigurationError."""
    import tomllib

    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(str(path), "", None, error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(str(path), "", None, f"not UTF-8 at byte {error.start}") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(str(path), "", None, f"not TOML: {error}") from error
    except RecursionError:
        raise ConfigurationError(str(path), "", None, "not TOML: too many brackets") from None
    return Reader(str(path)).configuration(document)


def bare(port: int) -> Configuration:
    """Return the configuration of a gateway that reads no file: a broker on loopback."""
    return Configuration(
        file="(none)", gateway_id=_host_name_or("tidegate"), listeners=(ListenerConfig(port=port),)
    )


def _host_name_or(otherwise: str) -> str:
    try:
        return gateway_id(socket.gethostname().partition(".")[0])
    except ValueError:
        return otherwise


class Reader:
    """Turns the document of one file into its configuration."""

    def __init__(self, file: str) -> None:
        self._file = file

    def configuration(self, document: dict[str, Any]) -> Configuration:
        """Return the configuration; raise ConfigurationError at the first mistake."""
        self._only(document, (*schema.TABLES, *schema.ARRAYS), "")
        gateway = self._table(document, "gateway", schema.GATEWAY)
        listeners = self._listeners(document)
        return Configuration(
            file=self._file,
            gateway_id=gateway.get("id") or self._host_name(),
            listeners=listeners or (ListenerConfig(),),
            access=self._access(document),
            broker=self._broker(document),
            uplink=self._uplink(document),
            outbox=self._outbox(document),
            memory=MemoryConfig(**self._table(document, "memory", schema.MEMORY)),
            storage=StorageConfig(**self._table(document, "storage", schema.STORAGE)),
            durability=self._durability(document),
            history=HistoryConfig(**self._table(document, "history", schema.HISTORY)),
            metrics=self._metrics(document),
            serial=tuple(
                SerialConfig(**settings)
                for settings in self._array(document, "serial", schema.SERIAL, needed=("port",))
            ),
            simulators=tuple(
                SimulatorConfig(**settings)
                for settings in self._array(
                    document, "simulator", schema.SIMULATOR, needed=("port",)
                )
            ),
            subscription_filters=tuple(
                SubscriptionFilterConfig(**settings)
                for settings in self._array(
                    document,
                    "subscription_filter",
                    schema.SUBSCRIPTION_FILTER,
                    needed=("client", "filter", "where"),
                )
            ),
        )

    def _host_name(self) -> str:
        name = socket.gethostname().partition(".")[0]
        try:
            return gateway_id(name)
        except ValueError as error:
            raise ConfigurationError(
                self._file, "gateway.id", name, f"the host's name cannot be used; set {error}"
            ) from error

    def _listeners(self, document: dict[str, Any]) -> tuple[ListenerConfig, ...]:
        tables = self._array(document, "listener", schema.LISTENER)
        for place, settings in enumerate(tables):
            mistake = find_mistake(settings)
            if mistake is not None:
                key, value, allowed = mistake
                raise ConfigurationError(self._file, f"listener[{place}].{key}", value, allowed)
        return tuple(ListenerConfig(**settings) for settings in tables)

    def _access(self, document: dict[str, Any]) -> AccessConfig:
        table = dict(self._is_table(document.get("access", {}), "access"))
        roles = tuple(
            RoleConfig(**settings)
            for settings in self._array(table, "role", schema.ROLE, "access.", needed=("name",))
        )
        table.pop("role", None)
        return AccessConfig(**self._checked(table, schema.ACCESS, "access."), roles=roles)

    def _broker(self, document: dict[str, Any]) -> BrokerConfig:
        broker = BrokerConfig(**self._table(document, "broker", schema.BROKER))
        if broker.topic_alias_soft_bytes > broker.topic_alias_hard_bytes:
            raise ConfigurationError(
                self._file,
                "broker.topic_alias_soft_bytes",
                broker.topic_alias_soft_bytes,
                f"at most topic_alias_hard_bytes, which is {broker.topic_alias_hard_bytes}",
            )
        return broker

    def _durability(self, document: dict[str, Any]) -> tuple[DurabilityConfig, ...]:
        entries = []
        tables = self._array(document, "durability", schema.DURABILITY, needed=("class",))
        for place, settings in enumerate(tables):
            key, topic = f"durability[{place}].topic", settings.get("topic")
            if topic is None and "client" not in settings:
                raise ConfigurationError(self._file, key, None, "topic or client must be given")
            if topic is not None and "client" in settings:
                allowed = "either topic or client, not both"
                raise ConfigurationError(self._file, key, topic, allowed)
            entries.append(DurabilityConfig(settings.pop("class"), **settings))
        return tuple(entries)

    def _outbox(self, document: dict[str, Any]) -> OutboxConfig:
        outbox = OutboxConfig(**self._table(document, "outbox", schema.OUTBOX))
        if outbox.survive:
            for key in ("expected_rate", "expected_bytes"):
                if getattr(outbox, key) is None:
                    allowed = "must be given with survive"
                    raise ConfigurationError(self._file, f"outbox.{key}", None, allowed)
        return outbox

    def _metrics(self, document: dict[str, Any]) -> MetricsConfig | None:
        if "metrics" not in document:
            return None
        metrics = MetricsConfig(**self._table(document, "metrics", schema.METRICS))
        mistake = find_metrics_mistake(metrics)
        if mistake is not None:
            key, value, allowed = mistake
            raise ConfigurationError(self._file, f"metrics.{key}", value, allowed)
        return metrics

    def _uplink(self, document: dict[str, Any]) -> UplinkConfig | None:
        if "uplink" not in document:
            return None
        table = self._is_table(document["uplink"], "uplink")
        rules = tuple(
            RuleConfig(**settings)
            for settings in self._array(table, "rule", schema.RULE, "uplink.", needed=("topic",))
        )
        streams = self._streams(table, rules)
        settings = {key: value for key, value in table.items() if key not in ("rule", "stream")}
        uplink = UplinkConfig(
            **self._checked(settings, schema.UPLINK, "uplink."), rules=rules, streams=streams
        )
        if uplink.url is not None and uplink.directory is not None:
            raise ConfigurationError(
                self._file,
                "uplink.directory",
                uplink.directory,
                "either url or directory, not both",
            )
        for key in ("batch", "schedule", "budget"):
            if uplink.url is None and getattr(uplink, key):
                value = getattr(uplink, key)
                raise ConfigurationError(self._file, f"uplink.{key}", value, "only with url")
        return uplink

    def _streams(
        self, table: dict[str, Any], rules: Sequence[RuleConfig]
    ) -> tuple[StreamConfig, ...]:
        tables = self._array(table, "stream", schema.STREAM, "uplink.", needed=("name",))
        streams = tuple(StreamConfig(**settings) for settings in tables)
        mistake = find_stream_mistake(streams, {rule.stream for rule in rules} or {"main"})
        if mistake is not None:
            key, value, allowed = mistake
            raise ConfigurationError(self._file, f"uplink.stream{key}", value, allowed)
        return streams

    def _table(
        self, document: dict[str, Any], name: str, section: schema.Section
    ) -> dict[str, Any]:
        table = self._is_table(document.get(name, {}), name)
        return self._checked(table, section, f"{name}.")

    def _array(
        self,
        document: dict[str, Any],
        name: str,
        section: schema.Section,
        prefix: str = "",
        needed: Iterable[str] = (),
    ) -> list[dict[str, Any]]:
        array = document.get(name, [])
        if not isinstance(array, list):
            allowed = f"[[{prefix}{name}]], one for each"
            raise ConfigurationError(self._file, prefix + name, array, allowed)
        tables = []
        for place, table in enumerate(array):
            where = f"{prefix}{name}[{place}]"
            settings = self._checked(self._is_table(table, where), section, f"{where}.")
            for key in needed:
                if key not in settings:
                    raise ConfigurationError(self._file, f"{where}.{key}", None, "must be given")
            tables.append(settings)
        return tables

    def _is_table(self, table: object, name: str) -> dict[str, Any]:
        if not isinstance(table, dict):
            raise ConfigurationError(self._file, name, table, f"a table: [{name}]")
        return table

    def _checked(
        self, table: dict[str, Any], section: schema.Section, prefix: str
    ) -> dict[str, Any]:
        self._only(table, section, prefix)
        checked = {}
        for key, value in table.items():
            try:
                checked[key] = section[key](value)
            except ValueError as error:
                raise ConfigurationError(
                    self._file, prefix + key, _without_credentials(value), str(error)
                ) from error
        return checked

    def _only(self, table: dict[str, Any], keys: Iterable[str], prefix: str) -> None:
        for key, value in table.items():
            if key not in keys:
                allowed = "unknown key; there are " + ", ".join(sorted(keys))
                raise ConfigurationError(self._file, prefix + key, value, allowed)


def _without_credentials(value: object) -> object:
    """Return the value as it can be shown: what stands between `//` and `@` in a URL is secret."""
    return re.sub(r"//.*@", "//***@", value) if isinstance(value, str) else value
