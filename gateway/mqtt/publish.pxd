import cython

from gateway.mqtt.fields cimport read_packet_identifier, to_text

@cython.locals(position=Py_ssize_t, topic_end=Py_ssize_t, qos=int, packet_id=Py_ssize_t,
               topic=str)
cpdef read_publish(
    bytes buffer, int first_byte, Py_ssize_t start, Py_ssize_t end, int version)
