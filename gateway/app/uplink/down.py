"""Connects messages from the fleet to the broker, the access rules and the database."""

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from gateway.access.access import AccessPolicy
from gateway.access.rule import WRITE
from gateway.app.parts import Core
from gateway.broker.own_names import UPLINK_CLIENT
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode
from gateway.storage.state.uplink_state import DownSeen
from gateway.uplink.down import Down, DownRule

if TYPE_CHECKING:
    from gateway.counters import Counters
    from gateway.settings.uplink import DownSettings


def open_down(
    gateway_id: str,
    core: Core,
    configured: "tuple[DownSettings, ...]",
    seen: DownSeen,
    counters: "Counters",
) -> Down:
    """Return a function that publishes an uplink's messages here."""

    def publish(message: Message, forced: bool) -> ReasonCode:
        broker, instant = core.broker, core.turn.instant
        message.received_at, message.arrived = instant.wall, instant.monotonic
        if broker.topic_limits.fault(message.topic):
            return ReasonCode.TOPIC_NAME_INVALID
        # the fleet still has messages that do not fit on the disk
        only_once = forced and broker.store.accepts(len(message.payload))
        return broker.publish(message, instant, only_once=only_once)

    return Down(
        gateway_id,
        [down_rule(core.policies, each) for each in configured],
        seen,
        counters,
        publish=publish,
        when_on_disk=core.turn.when_on_disk,
        later=asyncio.get_running_loop().call_later,
        refusal=lambda: core.broker.refusals.reason,
    )


def down_rule(policies: list[AccessPolicy], config: "DownSettings") -> DownRule:
    """Return a rule that uses the present access rules of all listeners."""
    rule = DownRule(config.topic, config.local, config.qos)
    username = config.username
    if username is None:
        return rule

    def may_write(topic: str) -> bool:
        """Check the present rules of every listener: one refusal is enough."""
        accesses = (
            policy.access(username, UPLINK_CLIENT, local=False, proven=True) for policy in policies
        )
        return all(access.rights(topic) & WRITE for access in accesses)

    return replace(rule, may_write=may_write)
