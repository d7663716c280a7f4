from gateway.mqtt.message cimport Message

cpdef Py_ssize_t message_size(Message message) except -1

cpdef Py_ssize_t message_bytes(topic, Py_ssize_t payload_size) except -1
