"""PORT FILTER [QOS [SECONDS]]: a consumer that works on each message in `on_message`."""

import sys
import time
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion


def main(port: str, topic_filter: str, qos: str = "", seconds: str = "0") -> None:
    """Print what SUBSCRIBE got, and each message once it is done."""
    client = paho.Client(CallbackAPIVersion.VERSION2)

    def subscribed(_client: Any, _data: Any, _id: int, codes: Any, _properties: Any) -> None:
        print("refused" if codes[0].is_failure else "subscribed", flush=True)

    def work(_client: Any, _data: Any, message: paho.MQTTMessage) -> None:
        time.sleep(float(seconds))
        print(message.payload.decode(), flush=True)

    client.on_subscribe, client.on_message = subscribed, work
    client.connect("127.0.0.1", int(port))
    if qos:
        client.subscribe(topic_filter, int(qos))
    else:
        client.subscribe(topic_filter)
    client.loop_forever()


main(*sys.argv[1:])
