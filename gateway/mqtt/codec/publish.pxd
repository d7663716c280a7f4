import cython

from gateway.mqtt.codec.fields cimport missing_bytes, read_packet_identifier, to_text
from gateway.mqtt.codec.publish_properties cimport block_bounds

@cython.locals(position=Py_ssize_t, topic_end=Py_ssize_t, qos=int, packet_id=Py_ssize_t,
               topic=str)
cpdef read_publish(
    bytes buffer, int first_byte, Py_ssize_t start, Py_ssize_t end, int version)

cdef int _QOS

@cython.locals(position=Py_ssize_t, name_end=Py_ssize_t)
cpdef tuple read_publish_head(
    bytes buffer, int first_byte, Py_ssize_t start, Py_ssize_t end, bint mqtt5)
