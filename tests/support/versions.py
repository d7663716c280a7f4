"""The versions of MQTT that the gateway speaks."""

from gateway.mqtt.packets import MQTT_3_1, MQTT_3_1_1, MQTT_5

VERSIONS = (MQTT_3_1, MQTT_3_1_1, MQTT_5)
