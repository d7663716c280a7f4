import cython

from gateway.mqtt.message cimport Message
from gateway.mqtt.output cimport Barrier
from gateway.mqtt.packet_batch cimport PacketBatch
from gateway.mqtt.codec.publish_properties cimport PublishProperties

cdef Py_ssize_t _MESSAGE_OVERHEAD

@cython.final
cdef class Publication:
    cdef public double arrived
    cdef public Barrier barrier
    cdef public object client_id
    cdef public object commit_within
    cdef readonly int first_byte
    cdef public dict forms
    cdef public Py_ssize_t holders
    cdef public list messages
    cdef public bint mixed
    cdef readonly bint mqtt5
    cdef public Py_ssize_t stored_for
    cdef public object packet_id
    cdef public PacketBatch packets
    cdef readonly PublishProperties properties
    cdef readonly int qos
    cdef public object received_at
    cdef public Py_ssize_t receivers
    cdef readonly bint retain
    cdef public long long row
    cdef public bint shared
    cdef public object topic
    cdef readonly bytes topic_name
    cdef public object username

    cpdef identifiers(self)
    cpdef bytes name_of(self, Py_ssize_t number)
    cpdef topic_of(self, Py_ssize_t number)
    @cython.locals(packets=PacketBatch)
    cpdef Py_ssize_t size(self, Py_ssize_t first, Py_ssize_t count) except -1
    @cython.locals(packets=PacketBatch, each=Py_ssize_t, count=Py_ssize_t)
    cpdef Py_ssize_t fitting(self, Py_ssize_t first, Py_ssize_t most, Py_ssize_t room) except -1
    cpdef bint expired(self, double now) except -1
    cpdef share_forms(self)
    cpdef forget_forms(self)
    @cython.locals(message=Message)
    cpdef Message message(self, Py_ssize_t number)
    @cython.locals(message=Message)
    cpdef Message new_message(self, Py_ssize_t number)
    @cython.locals(packets=PacketBatch, name=bytes, part=Publication)
    cpdef Publication part(self, Py_ssize_t first, Py_ssize_t count)
