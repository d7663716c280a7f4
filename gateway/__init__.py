"""The gateway: a local MQTT broker, bridges from sensors, and the uplink to the fleet."""
