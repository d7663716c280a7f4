from gateway.mqtt.message_size cimport message_size
