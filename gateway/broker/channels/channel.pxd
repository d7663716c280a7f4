import cython

from gateway.broker.channels.consumers cimport Consumers
from gateway.broker.channels.deliveries cimport Deliveries, Delivery
from gateway.broker.channels.figures cimport ChannelFigures
from gateway.mqtt.connection cimport Connection
from gateway.mqtt.delivery_policy cimport DeliveryPolicy
from gateway.mqtt.publication cimport Publication
from gateway.session.session cimport Session
from gateway.session.span cimport Span

cdef class Channel(Session):
    cdef list _acknowledged
    cdef object _attempts
    cdef readonly Deliveries deliveries
    cdef readonly object returned
    cdef public bint unnoted
    cdef long long _unsure
    cdef public Consumers consumers
    cdef public list dead_letters
    cdef readonly ChannelFigures figures
    cdef public bint paused
    cdef public object paused_filters
    cdef readonly object settings
    cdef public object wake
    cdef public double wakes_at

    @cython.locals(alike=Py_ssize_t, span=Span)
    cpdef accept(
        self, Publication publication, Py_ssize_t first, Py_ssize_t count, int qos, bint retain=*,
        tuple subscription_identifiers=*, double now=*, bint promised=*, str topic_filter=*,
        DeliveryPolicy policy=*)
    cpdef Py_ssize_t room(
        self, Publication publication, Py_ssize_t first, Py_ssize_t most, int qos) except -1
    cdef bint _is_clear(self, Span span, bint promised) except -1
    @cython.locals(share=Py_ssize_t, given=Py_ssize_t, part=Span, rest=Span)
    cdef _give_at_once(self, Span span, bint promised, double now)
    @cython.locals(first=Delivery)
    cpdef pump(self, double now)
    @cython.locals(span=Span, attempts=Py_ssize_t, count=Py_ssize_t)
    cdef bint _send_next(self, double now) except -1
    cdef Py_ssize_t _room(self, Span span, member) except -1
    @cython.locals(consumer=Session, connection=Connection, publication=Publication,
                   first=Py_ssize_t, count=Py_ssize_t, qos=int, retain=bint, identifiers=tuple,
                   sent=Span, unsure=bint, due=double, delivery=Delivery, commit="long long")
    cdef _give(self, Span source, member, Py_ssize_t attempts, double now)
    @cython.locals(delivery=Delivery)
    cpdef finished(self, Span span, Py_ssize_t number, Py_ssize_t count)
    cdef _note_acknowledged(self, Publication publication, Py_ssize_t count)
