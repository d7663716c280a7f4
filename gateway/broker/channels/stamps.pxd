import cython

from gateway.mqtt.codec.publish cimport PublishProperties
from gateway.mqtt.publication cimport PacketBatch, Publication
from gateway.mqtt.publish_encoder cimport publication_of_one, write_packets
from gateway.session.span cimport Span

cdef long long _BITS
cdef long long _SERIAL
cdef long long _TO_SERIAL
cdef long long _UNSTORED
cdef bytes _ID
cdef bytes _QUEUED_AT
cdef bytes _ATTEMPT

@cython.locals(publication=Publication, time="long long", serial="long long")
cpdef long long message_id(Span span, Py_ssize_t number) except -1

@cython.locals(publication=Publication, first=Py_ssize_t, count=Py_ssize_t, attempts=bytes,
               time=bytes, tail=bytes, own=PublishProperties, data=bytes,
               properties=PublishProperties, name=bytes, made=Publication, first_byte=int,
               packets=PacketBatch)
cpdef Publication stamped(Span span, int qos, bint retain, Py_ssize_t attempt)

@cython.locals(publication=Publication, first=Py_ssize_t, count=Py_ssize_t, packets=PacketBatch,
               name=bytes, block=bytes, written=bytearray, index=Py_ssize_t, end=Py_ssize_t)
cdef PacketBatch _write(Span span, int first_byte, bytes data, Py_ssize_t tail)
