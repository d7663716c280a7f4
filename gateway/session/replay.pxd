import cython

from gateway.mqtt.connection cimport Connection
from gateway.mqtt.plain_message cimport Origin, PlainMessage
from gateway.mqtt.publish_wire cimport append_publish
from gateway.session.session cimport Session

cdef int _FIRST_BYTE

@cython.locals(place=Py_ssize_t)
cpdef replay(
    Session session, list messages, whole, int qos, tuple subscription_identifiers, double now)

@cython.locals(connection=Connection, fields=bytes, room=Py_ssize_t, data=bytearray,
               begin=Py_ssize_t, payload_bytes=Py_ssize_t, start=Py_ssize_t, payload=bytes)
cdef Py_ssize_t _send_many(
    Session session, list messages, Py_ssize_t place, int qos,
    tuple subscription_identifiers) except -1

cdef bint _is_simple(message, int qos, int version) except -1
