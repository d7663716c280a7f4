"""paho's client with the one thing that it does only from its own memory: to send again."""

from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import MessageState, MQTTErrorCode
from paho.mqtt.properties import Properties


class PahoClient(Client):
    """A client made for one connection, which may go on with an earlier one's messages.

    paho repeats messages only on a connection of the same object, as they were, with topic
    aliases that stand for nothing there. So it is told here which to repeat, as they are now.
    """

    @property
    def last_packet_identifier(self) -> int:
        """The packet identifier that was given last; the next one is higher, or 1."""
        return self._last_mid

    @last_packet_identifier.setter
    def last_packet_identifier(self, mid: int) -> None:
        self._last_mid = mid

    def publish_again(
        self, mid: int, topic: str, payload: bytes, retain: bool, properties: Properties | None
    ) -> MQTTErrorCode:
        """Queue a QoS 1 PUBLISH with DUP [MQTT-3.3.1-1] under its old identifier."""
        message = MQTTMessage(mid, topic.encode())
        message.payload = payload
        message.qos = 1
        message.retain = retain
        message.dup = True
        message.properties = properties
        message.state = MessageState.MQTT_MS_WAIT_FOR_PUBACK
        self._out_messages[mid] = message
        self._inflight_messages += 1
        return self._send_publish(
            mid,
            topic.encode(),
            payload,
            qos=1,
            retain=retain,
            dup=True,
            info=message.info,
            properties=properties,
        )
