"""The way up to the fleet: rules, outbox and uplink, joined to the broker."""

from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.config.settings import UplinkConfig
from gateway.routing.where.compile import compile_where
from gateway.storage.outbox import Outbox
from gateway.storage.rejected import Rejected
from gateway.uplink.rules import Rule, RuleSet
from gateway.uplink.settings import UplinkSettings
from gateway.uplink.uplink import Uplink

if TYPE_CHECKING:
    from gateway.app.gateway import Gateway

LANDING = "landing"
"""The folder in the data folder that stands in for a fleet."""


async def start_uplink(gateway: "Gateway") -> None:
    """Join rules, outbox and uplink to the broker, if the configuration has an uplink."""
    config = gateway.configuration.uplink
    if config is None:
        return
    outbox = Outbox(gateway.database, gateway.writer, gateway.counters)
    await outbox.load()
    gateway.stack.push_async_callback(outbox.close)
    rejected = Rejected(gateway.database, gateway.writer, gateway.counters)
    await rejected.load()
    rules = RuleSet(_rules(config), outbox, gateway.counters, gateway.epoch)
    gateway.broker.subscribe_inline(rules, rules.topic_filters)
    settings = _settings(gateway, config)
    uplink = Uplink(settings, outbox, rejected, gateway.counters, gateway.clock)
    gateway.control.know("uplink", "pause", uplink.pause)
    gateway.control.know("uplink", "resume", uplink.resume)
    gateway.telemetry.show_age(outbox)
    uplink.on_state.append(gateway.telemetry.say)
    await uplink.start()
    gateway.stack.push_async_callback(uplink.close)


def _rules(config: UplinkConfig) -> list[Rule]:
    return [
        Rule(
            rule.topic,
            None if rule.where is None else compile_where(rule.where),
            rule.stream,
            rule.lane,
        )
        for rule in config.rules
    ]


def _settings(gateway: "Gateway", config: UplinkConfig) -> UplinkSettings:
    directory = None
    if config.url is None:
        directory = Path(config.directory) if config.directory else gateway.data / LANDING
    return UplinkSettings(
        gateway_id=gateway.configuration.gateway_id,
        epoch=gateway.epoch,
        version=version("tidegate"),
        url=config.url,
        directory=directory,
        username=config.username,
        password_file=_path(config.password_file),
        ca_file=_path(config.ca_file),
        client_id=config.client_id,
        prefix=config.prefix,
        identity=config.identity,
    )


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text)
