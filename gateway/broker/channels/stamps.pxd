import cython

from gateway.mqtt.aliases.outbound_aliases cimport OutboundAliases
from gateway.mqtt.codec.fields cimport write_string, write_variable_byte_integer
from gateway.mqtt.codec.publish cimport PublishProperties, property_block
from gateway.mqtt.connection cimport Connection
from gateway.mqtt.publication cimport PacketBatch, Publication, body_start
from gateway.mqtt.publish_encoder cimport remaining_expiry
from gateway.session.session cimport Session
from gateway.session.span cimport Span
from gateway.session.traffic cimport Traffic

cdef long long _BITS
cdef long long _SERIAL
cdef long long _TO_SERIAL
cdef long long _UNSTORED
cdef bytes _ID
cdef bytes _QUEUED_AT
cdef bytes _ATTEMPT
cdef bytes _SERIAL_DIGITS
cdef bytes _HEXADECIMAL
cdef bytes _NO_TOPIC
cdef bytes _NO_IDENTIFIER
cdef Py_ssize_t _GROWTH
cdef Py_ssize_t _IDENTIFIER_SIZE
cdef tuple _SINGLE_BYTES

cpdef long long message_id(Span span, Py_ssize_t number) except -1

@cython.locals(publication=Publication, serial="long long")
cdef long long _serial(Span span, Py_ssize_t number) except -1

@cython.final
cdef class Stamps:
    cdef Py_ssize_t _attempt
    cdef bytes _back
    cdef bytes _stamp
    cdef Py_ssize_t _tail
    cdef long long _time

    @cython.locals(time="long long", growth=Py_ssize_t, data=bytearray)
    cpdef bint send(
        self, Session consumer, Connection connection, Span source, Span sent, Py_ssize_t attempt,
        double now, long long commit) except -1
    @cython.locals(tail=bytes)
    cdef _make(self, long long time, Py_ssize_t attempt)
    @cython.locals(publication=Publication, first=Py_ssize_t, count=Py_ssize_t,
                   packets=PacketBatch, mixed=bint, name=bytes, data=bytes,
                   view="const unsigned char *", first_byte=bytes, topic=bytes, buffer=bytearray,
                   back="unsigned char *", length=Py_ssize_t, skipped=Py_ssize_t,
                   serial="long long", packet_id=Py_ssize_t, head=bytes, before=Py_ssize_t,
                   payloads=Py_ssize_t, fresh=bint, place=Py_ssize_t, last=Py_ssize_t,
                   behind=Py_ssize_t, parts=list, number=Py_ssize_t, start=Py_ssize_t, offset=Py_ssize_t, end=Py_ssize_t, alias=Py_ssize_t,
                   size=Py_ssize_t)
    cdef bytearray _packets(
        self, Span source, Span sent, OutboundAliases aliases, double now, Traffic traffic)
    @cython.locals(properties=PublishProperties, identifiers=tuple, block=bytes)
    cdef bytes _behind_topic(
        self, Publication publication, Span sent, Py_ssize_t alias, double now)

@cython.locals(digits="const unsigned char *")
cdef _write_digits(bytearray buffer, Py_ssize_t end, long long number)
