"""Connects once to each uplink of a configuration, and reports what the other side allows."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from gateway.app.uplink.links import settings_at_fleet
from gateway.config.configuration import Configuration
from gateway.mqtt.packets import ConnAck, SubAck, SubscriptionRequest
from gateway.mqtt.reason_codes import FAILURE
from gateway.settings.uplink import UplinkSettings
from gateway.settings.uplinks import PlacedRule, rules_of
from gateway.uplink.context import RECALL_TOPIC
from gateway.uplink.destination import Link
from gateway.uplink.down import subscription
from gateway.uplink.errors import LinkError, OldBrokerError, in_words
from gateway.uplink.fleet.client import FleetClient
from gateway.uplink.fleet.fleet import CONNACK_SECONDS, Dialect, dialects
from gateway.uplink.rules.targets import fill

ANSWER_SECONDS = 10.0
"""Seconds to wait for the answer to a SUBSCRIBE."""

POLL_SECONDS = 0.25

TRIAL = "-try"
"""Suffix of the client identifier if a gateway of this machine is connected with it."""


@dataclass(slots=True)
class Trial:
    """The findings about one uplink: what the other side `allows`, and what does not `pass`."""

    name: str
    allows: list[str] = field(default_factory=list)
    fails: list[str] = field(default_factory=list)


def try_uplinks(configuration: Configuration, *, running: bool) -> list[Trial]:
    """Connect to each fleet's broker as configured, and publish nothing.

    Its session there stays as it is: nothing is acknowledged, no will is sent, and a session that
    the trial began is ended. If the gateway is `running`, another client identifier is used, since
    it would lose its connection.
    """
    trials = []
    placed = rules_of(configuration.uplinks)
    for index, table in enumerate(configuration.uplinks):
        rules = [each for each in placed if index in each.uplinks]
        for place, url in enumerate(table.urls):
            one = replace(table, urls=(url,))
            trial = asyncio.run(_try(configuration, one, rules, running=running))
            if running and place == 0:
                trial.allows.insert(0, _other_client(settings_at_fleet(configuration, table)))
            trials.append(trial)
    return trials


async def _try(
    configuration: Configuration,
    table: UplinkSettings,
    rules: Sequence[PlacedRule],
    *,
    running: bool,
) -> Trial:
    settings = settings_at_fleet(configuration, table)
    trial = Trial(f"uplink {table.name or ''}".rstrip())
    if running:
        settings = replace(settings, client_id=settings.fleet_client_id + TRIAL, session_expiry=0)
    error: LinkError | None = None
    for dialect in dialects(settings):
        error = None
        attempt = _Attempt(settings, dialect, clean_start=running)
        try:
            await attempt.run()
        except OldBrokerError:
            trial.allows.append(f"the fleet's broker does not speak {dialect.name}")
            error = LinkError("it speaks no version of MQTT that the uplink may use")
            continue
        except LinkError as problem:
            error = problem
        finally:
            await attempt.client.close()
        if attempt.began_session:
            await _end_session(settings, dialect)
        if error is None and attempt.connack is not None:
            trial.allows += _allowed(attempt.connack, settings, dialect)
            trial.fails += _failing(attempt, settings, rules, dialect)
        break
    if error is not None:
        trial.fails.append(f"{settings.url}: {error}")
    return trial


async def _end_session(settings: UplinkSettings, dialect: Dialect) -> None:
    """End the session of the trial, which would keep retained messages from the gateway.

    It gets them with its first subscription of a session.
    """
    without = replace(settings, session_expiry=0, down=(), recall=False)
    attempt = _Attempt(without, dialect, clean_start=True)
    with suppress(LinkError):
        await attempt.run()
    await attempt.client.close()


def _other_client(settings: UplinkSettings) -> str:
    name = settings.fleet_client_id + TRIAL
    return f"a gateway runs here: tried as {name!r}, whose rights at the broker may differ"


class _Attempt:
    """One connection: its CONNACK, and the answers to the subscriptions."""

    def __init__(self, settings: UplinkSettings, dialect: Dialect, *, clean_start: bool) -> None:
        self._settings = settings
        self.clean = clean_start
        self._link = Link(lambda _trouble: None)
        self.client = FleetClient(
            settings,
            self._link.wake.set,
            lambda _mid, _code: None,
            mqtt_5=dialect.mqtt_5,
            bridge=dialect.bridge,
        )
        self.client.listen(lambda _publish, _acknowledge: None)  # the gateway receives it again
        self.client.on_suback = self._subscribed
        self._wanted = self._subscriptions()
        self.connack: ConnAck | None = None
        self.answers: list[SubAck] = []

    @property
    def began_session(self) -> bool:
        """Whether the broker has a session since this connection that outlives it."""
        connack = self.connack
        return not self.clean and connack is not None and not connack.session_present

    @property
    def refused(self) -> Iterator[tuple[str, str]]:
        """The topic filters that the broker refuses to this client, and why."""
        for request, answer in zip(self._wanted, self.answers, strict=False):
            for code in answer.reason_codes:
                if code >= FAILURE:
                    yield request.topic_filter, in_words(code)

    def _subscriptions(self) -> list[SubscriptionRequest]:
        settings = self._settings
        wanted = [
            subscription(fill(each.topic, settings.gateway_id, ""), each.qos)
            for each in settings.down
        ]
        if settings.recall:
            wanted.append(SubscriptionRequest(settings.topic(RECALL_TOPIC), 1))
        never = 2  # the retained messages are for the gateway
        return [replace(each, retain_handling=never) for each in wanted]

    def _subscribed(self, answer: SubAck) -> None:
        self.answers.append(answer)
        self._link.wake.set()

    async def run(self) -> None:
        """Connect and subscribe; raise LinkError."""
        client = self.client
        client.connect(None, clean_start=self.clean)
        await self._until(lambda: client.limits is not None, CONNACK_SECONDS, "no CONNACK")
        self.connack = client.connack
        for request in self._wanted:  # one by one: some brokers refuse a SUBSCRIBE as a whole
            count = len(self.answers) + 1
            client.subscribe(request)
            client.flush()
            text = f"no answer to the subscription to {request.topic_filter!r}"
            await self._until(lambda: len(self.answers) >= count, ANSWER_SECONDS, text)  # noqa: B023 - awaited at once

    async def _until(self, done: Callable[[], bool], seconds: float, text: str) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while not done():
            self.client.service()
            if loop.time() > end:
                raise LinkError(f"{text} within {seconds:.0f} s")
            await self._link.wait(POLL_SECONDS)


def _allowed(connack: ConnAck, settings: UplinkSettings, dialect: Dialect) -> Iterator[str]:
    """Yield the limits that the broker reports."""
    session = "kept" if connack.session_present else "none"
    yield f"{settings.url}: connected with {dialect.name}; session of the gateway: {session}"
    if not dialect.mqtt_5:
        yield "MQTT 3.1.1 reports no limits"
        return
    properties = connack.properties
    receive, size = properties.receive_maximum or 65_535, properties.maximum_packet_size
    yield f"Maximum QoS {2 if properties.maximum_qos is None else properties.maximum_qos}"
    yield f"retained messages: {'no' if properties.retain_available == 0 else 'yes'}"
    yield f"Maximum Packet Size {'not given' if size is None else f'{size:,} bytes'}"
    yield f"Receive Maximum {receive:,}"
    yield f"Topic Alias Maximum {properties.topic_alias_maximum or 0:,}"
    if properties.session_expiry_interval is not None:
        yield f"sessions are stored for {properties.session_expiry_interval:,} s"
    if properties.server_keep_alive is not None:
        yield f"Keep Alive {properties.server_keep_alive:,} s"
    if properties.assigned_client_identifier is not None:
        yield f"client identifier {properties.assigned_client_identifier!r}, by the broker"
    yield "the right to publish is not tested, since nothing is published"


def _failing(
    attempt: _Attempt, settings: UplinkSettings, rules: Sequence[PlacedRule], dialect: Dialect
) -> Iterator[str]:
    """Yield what of the configuration does not work as written."""
    for topic_filter, why in attempt.refused:
        yield f"nothing is received on {topic_filter!r}: {why}"
    if attempt.connack is None or not dialect.mqtt_5:
        return
    properties = attempt.connack.properties
    if properties.retain_available == 0:
        for key, rule, _ in rules:
            if rule.retain:
                yield f"{key}.retain: the broker retains nothing; messages are sent without RETAIN"
    expiry = properties.session_expiry_interval
    if expiry is not None and expiry < settings.session_expiry and not attempt.clean:
        wanted = f"{settings.session_expiry:,}"
        yield f"session_expiry: the broker stores sessions for {expiry:,} s, not {wanted} s"
    size = properties.maximum_packet_size
    if size is not None and size < settings.packet_bytes:
        yield (
            f"messages of more than {size:,} bytes are not sent; clients here may publish"
            f" {settings.packet_bytes:,}"
        )
    if properties.wildcard_subscription_available == 0:
        for each in settings.down:
            if "+" in each.topic or "#" in each.topic:
                yield f"down {each.topic!r}: the broker accepts no topic filters with wildcards"
