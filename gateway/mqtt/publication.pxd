import cython

from gateway.mqtt.message cimport Message
from gateway.mqtt.output cimport Barrier
from gateway.mqtt.codec.publish cimport PublishProperties

cdef Py_ssize_t _MESSAGE_OVERHEAD

cdef bytes _HIGH
cdef bytes _LOW

@cython.final
cdef class PacketBatch:
    cdef list _offsets
    cdef list _starts
    cdef readonly Py_ssize_t body
    cdef readonly Py_ssize_t count
    cdef readonly bytes data
    cdef readonly Py_ssize_t identifier
    cdef readonly Py_ssize_t largest
    cdef readonly Py_ssize_t payload
    cdef readonly Py_ssize_t payloads
    cdef readonly Py_ssize_t size

    @cython.locals(count=Py_ssize_t)
    cpdef fill(
        self, bytes data, Py_ssize_t size, Py_ssize_t body, Py_ssize_t identifier,
        Py_ssize_t payload)
    cpdef extend(self, bytes data, list starts, list offsets, Py_ssize_t largest)
    cpdef replace_data(self, bytes data)
    @cython.locals(data=bytes)
    cpdef shorten(self, Py_ssize_t count)
    cpdef Py_ssize_t start(self, Py_ssize_t number) except -1
    @cython.locals(end=Py_ssize_t, heads=Py_ssize_t)
    cpdef Py_ssize_t payload_bytes(self, Py_ssize_t first, Py_ssize_t count) except -1
    @cython.locals(offset=Py_ssize_t, size=Py_ssize_t)
    cpdef bytes one(self, Py_ssize_t number)
    @cython.locals(data=bytes, start=Py_ssize_t)
    cpdef bytes topic_name(self, Py_ssize_t number)
    @cython.locals(offset=Py_ssize_t, data=bytes, back=Py_ssize_t)
    cpdef identifiers(self)
    cpdef bytes slice(self, Py_ssize_t first, Py_ssize_t count)
    @cython.locals(data=object, one=bytearray, size=Py_ssize_t, offset=Py_ssize_t, back=Py_ssize_t)
    cpdef bytearray numbered(self, Py_ssize_t first, Py_ssize_t count, Py_ssize_t packet_id)
    cpdef PacketBatch part(self, Py_ssize_t first, Py_ssize_t count)

@cython.locals(body=Py_ssize_t, payload=Py_ssize_t)
cpdef PacketBatch uneven_batch(bytes data, list starts, list offsets, Py_ssize_t back)

cpdef Py_ssize_t body_start(bytes data, Py_ssize_t start) except -1

@cython.locals(first=Py_ssize_t, end=Py_ssize_t)
cpdef packet_ids(bytes high, bytes low)

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
    cdef public long long serial
    cdef public bint shared
    cdef public object topic
    cdef readonly bytes topic_name
    cdef public object username

    cpdef fill(
        self, PacketBatch packets, int first_byte, bint mqtt5, bytes topic_name,
        PublishProperties properties)
    cpdef identifiers(self)
    cpdef bytes name_of(self, Py_ssize_t number)
    cpdef topic_of(self, Py_ssize_t number)
    @cython.locals(packets=PacketBatch)
    cpdef Py_ssize_t size(self, Py_ssize_t first, Py_ssize_t count) except -1
    @cython.locals(packets=PacketBatch, each=Py_ssize_t)
    cpdef Py_ssize_t fitting(self, Py_ssize_t first, Py_ssize_t most, Py_ssize_t capacity) except -1
    cpdef bint expired(self, double now) except -1
    cpdef share_forms(self)
    @cython.locals(message=Message)
    cpdef Message message(self, Py_ssize_t number)
    @cython.locals(message=Message)
    cpdef Message new_message(self, Py_ssize_t number)
    @cython.locals(packets=PacketBatch, name=bytes, part=Publication)
    cpdef Publication part(self, Py_ssize_t first, Py_ssize_t count)
