"""`tidegate subscribe`: prints messages as they arrive, to try a filter or see a sensor."""

import signal
import sys
from types import FrameType
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from gateway.cli.local_broker import LocalBroker
from gateway.errors import TidegateError
from gateway.mqtt.errors import MqttError
from gateway.mqtt.topics import check_topic_filter


def harmless(text: str) -> str:
    """Return the text with control characters escaped, so that it cannot drive the terminal."""
    return "".join(
        letter if letter.isprintable() or letter == "\t" else ascii(letter)[1:-1] for letter in text
    )


class _Subscriber:
    def __init__(self, topic_filter: str, where: str | None, every: str | None) -> None:
        self.problem = ""
        self._topic_filter = topic_filter
        given = {"$where": where, "$every": every}
        self._requested = [(name, value) for name, value in given.items() if value is not None]

    def on_connect(
        self, client: paho.Client, _data: Any, _flags: Any, code: Any, _properties: Any
    ) -> None:
        if code.is_failure:
            self._stop(client, f"the gateway refuses the connection: {code}")
            return
        properties = Properties(PacketTypes.SUBSCRIBE)  # type: ignore[no-untyped-call]  # paho's own
        if self._requested:
            properties.UserProperty = self._requested
        client.subscribe(self._topic_filter, options=SubscribeOptions(qos=1), properties=properties)

    def on_subscribe(
        self, client: paho.Client, _data: Any, _mid: int, codes: list[Any], properties: Any
    ) -> None:
        if codes[0].is_failure:
            reason = getattr(properties, "ReasonString", "") or str(codes[0])
            self._stop(client, f"the gateway refuses {self._topic_filter!r}: {reason}")

    def on_message(self, _client: paho.Client, _data: Any, message: paho.MQTTMessage) -> None:
        payload = message.payload.decode(errors="backslashreplace")
        print(harmless(f"{message.topic} {payload}"), flush=True)

    def _stop(self, client: paho.Client, problem: str) -> None:
        self.problem = problem
        client.disconnect()


def subscribe(broker: LocalBroker, topic_filter: str, where: str | None, every: str | None) -> int:
    """Print `<topic> <payload>` lines until interrupted; raise TidegateError on a refusal."""
    try:
        check_topic_filter(topic_filter)
    except MqttError as error:
        raise TidegateError(error.reason) from error
    subscriber = _Subscriber(topic_filter, where, every)
    client = broker.connect()
    client.on_connect = subscriber.on_connect
    client.on_subscribe = subscriber.on_subscribe
    client.on_message = subscriber.on_message

    def stop(_signal: int, _frame: FrameType | None) -> None:
        sys.exit(0)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # as in `tidegate subscribe | head`
    client.loop_forever()
    if subscriber.problem:
        raise TidegateError(subscriber.problem)
    return 0
