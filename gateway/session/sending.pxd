import cython

from gateway.mqtt.connection cimport Connection
from gateway.mqtt.publication cimport PacketBatch, Publication
from gateway.mqtt.publish_encoder cimport encode, encode_with_alias
from gateway.session.queue.delivery_queue cimport DeliveryQueue
from gateway.session.inflight cimport Inflight
from gateway.session.session cimport Session
from gateway.session.span cimport Span
from gateway.session.traffic cimport Traffic

cdef int _PUBLISH
cdef int _DUP
cdef Py_ssize_t _LARGE

@cython.locals(first_byte=int, limit="long long", number=Py_ssize_t, packets=PacketBatch,
               mqtt5=bint, whole=bint, traffic=Traffic)
cpdef send(
    Session session, Connection connection, Publication publication, Py_ssize_t first,
    Py_ssize_t count, int qos, bint retain, tuple subscription_identifiers, Span span, double now,
    long long commit=*)

cdef _send_one(
    Session session, Connection connection, PacketBatch packet, Py_ssize_t number, Span span,
    long long commit)

cpdef send_span(
    Session session, Connection connection, Span span, double now, long long commit=*)

@cython.locals(queue=DeliveryQueue, inflight=Inflight, span=Span, publication=Publication,
               bytes_free=Py_ssize_t, count=Py_ssize_t)
cpdef send_waiting(Session session, Connection connection, double now)

cdef _check_no_more(Session session)

@cython.locals(count=Py_ssize_t)
cdef Py_ssize_t _readable(Session session, Span span) except -2

@cython.locals(inflight=Inflight, packet_id=Py_ssize_t, span=Span)
cpdef resend(Session session, Connection connection, double now)

@cython.locals(number=Py_ssize_t, first_byte=int, mqtt5=bint, packet=PacketBatch)
cdef _resend(
    Session session, Connection connection, Span span, Py_ssize_t packet_id, double now,
    long long commit)
