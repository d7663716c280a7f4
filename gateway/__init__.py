"""The gateway: a local MQTT broker, bridges from sensors, and the uplink to the fleet."""

from gateway.compiled import load_from_library

load_from_library()
