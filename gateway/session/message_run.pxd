import cython

from gateway.mqtt.packet_run cimport PacketRun
from gateway.mqtt.output cimport Pledge
from gateway.mqtt.publish_run cimport PublishRun

@cython.final
cdef class MessageRun:
    cdef dict _forms
    cdef list _messages
    cdef bint _properties
    cdef readonly double arrived
    cdef public bint at_once
    cdef readonly object client_id
    cdef readonly object commit_within
    cdef public Py_ssize_t holders
    cdef public Py_ssize_t lent
    cdef public Py_ssize_t owed
    cdef readonly PublishRun packets
    cdef readonly Pledge pledge
    cdef readonly int qos
    cdef readonly object received_at
    cdef public long long row
    cdef public object shared
    cdef readonly Py_ssize_t size
    cdef readonly object topic
    cdef readonly object username
    cdef readonly int version

    @cython.locals(properties=bint, data=bytes)
    cpdef bytes plain(self, int version)
    @cython.locals(form=PublishRun, properties=bint, topic=Py_ssize_t)
    cpdef numbered(self, Py_ssize_t first, int qos, int version)
    cdef _keep(self, int qos, bint properties, form)
    @cython.locals(packets=PublishRun)
    cdef PacketRun _rewritten(self, int qos, bint properties)
    cdef _message(self, Py_ssize_t number, Py_ssize_t own)
