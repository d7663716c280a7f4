import cython

from gateway.mqtt.packet_run cimport PacketRun
from gateway.mqtt.publish_form cimport behind_topic

@cython.final
cdef class PublishRun:
    cdef Py_ssize_t _place
    cdef list _places
    cdef readonly Py_ssize_t count
    cdef readonly bytes high
    cdef readonly bytes low
    cdef readonly PacketRun packets
    cdef readonly Py_ssize_t payload
    cdef readonly Py_ssize_t payload_bytes

    @cython.locals(packets=PacketRun, data=object, size=Py_ssize_t, high=bytes, low=bytes,
                   place=Py_ssize_t, upper=cython.uchar, lower=cython.uchar)
    cpdef numbered(self, Py_ssize_t first)
    @cython.locals(packets=PacketRun, end=Py_ssize_t)
    cpdef bytes one(self, Py_ssize_t number)

@cython.locals(run=PublishRun, count=Py_ssize_t, data=bytes, place=Py_ssize_t, marks=bytes)
cpdef PublishRun publish_run(PacketRun packets, Py_ssize_t topic, bint properties)

cpdef PublishRun publish_alone(bytes data, Py_ssize_t rest, Py_ssize_t topic, bint properties)
