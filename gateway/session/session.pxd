import cython

from gateway.counters cimport Counters
from gateway.mqtt.connection cimport Connection
from gateway.mqtt.delivery_policy cimport DeliveryPolicy
from gateway.mqtt.publication cimport Publication
from gateway.session.delivery_class cimport DeliveryClass
from gateway.session.queue.delivery_queue cimport DeliveryQueue
from gateway.session.incoming cimport Incoming
from gateway.session.inflight cimport Inflight
from gateway.session.span cimport Span
from gateway.session.traffic cimport Traffic

cdef class Session:
    cdef Incoming _incoming
    cdef object _will
    cdef public object access
    cdef readonly object client_id
    cdef public object conflated
    cdef public Connection connection
    cdef public tuple consumes
    cdef public Counters counters
    cdef public DeliveryClass delivery
    cdef public dict drops
    cdef public object durability_class
    cdef public bint ended
    cdef public object expiry_interval
    cdef public object granted
    cdef public object home
    cdef public str holder
    cdef public Inflight inflight
    cdef public object journal
    cdef public object limits
    cdef public object on_capacity
    cdef public object origin
    cdef public DeliveryQueue queue
    cdef public Traffic traffic
    cdef public bint unchecked
    cdef public object username

    @cython.locals(packet_id=Py_ssize_t, span=Span, count=Py_ssize_t)
    cpdef Py_ssize_t finish(self, identifiers, Py_ssize_t start, int qos=*) except -2
    cpdef forget(self, Span span, Py_ssize_t first, Py_ssize_t count)
    cpdef drop(self, Span span, Py_ssize_t number)
    cpdef release(self, Py_ssize_t packet_id, Span span)
    @cython.locals(connection=Connection)
    cpdef Connection clear_connection(self)
    cpdef bint ready(self, int qos, Py_ssize_t ahead=*) except -1
    @cython.locals(waiting=Py_ssize_t, sent=Py_ssize_t)
    cpdef Py_ssize_t capacity(
        self, Publication publication, Py_ssize_t first, Py_ssize_t most, int qos) except -1
    @cython.locals(
        connection=Connection, span=Span, number=Py_ssize_t, before=Py_ssize_t, latest=double)
    cpdef accept(
        self, Publication publication, Py_ssize_t first, Py_ssize_t count, int qos, bint retain=*,
        tuple subscription_identifiers=*, double now=*, bint reserved=*, str topic_filter=*,
        DeliveryPolicy policy=*)
    @cython.locals(count=Py_ssize_t, rest=Span)
    cdef _accept(self, Connection connection, Span span, double now, bint reserved)
    @cython.locals(connection=Connection)
    cdef _send_checked(self, double now)
    @cython.locals(connection=Connection)
    cpdef pump(self, double now)

from gateway.session cimport sending

cpdef double held_until(Publication publication, double now) except -1
