import cython

from gateway.broker.channels.consumers cimport Consumers, session_of
from gateway.broker.channels.deliveries cimport Deliveries
from gateway.broker.channels.figures cimport ChannelFigures
from gateway.broker.channels.stamps cimport Stamps
from gateway.broker.channels.waiting cimport Offer, Waiting
from gateway.mqtt.connection cimport Connection
from gateway.mqtt.delivery_policy cimport DeliveryPolicy
from gateway.mqtt.publication cimport Publication
from gateway.session.sending cimport send
from gateway.session.session cimport Session, held_until
from gateway.session.span cimport Span

@cython.final
cdef class Dispatcher:
    cdef Session _channel
    cdef Consumers _consumers
    cdef object _dead_letters
    cdef Deliveries _deliveries
    cdef ChannelFigures _figures
    cdef Stamps _stamps
    cdef Waiting _waiting
    cdef public object settings

    @cython.locals(consumers=Consumers, count=Py_ssize_t, share=Py_ssize_t, given=Py_ssize_t,
                   first=Py_ssize_t, fitting=Py_ssize_t)
    cpdef Py_ssize_t dispatch_new(self, Span span, double now) except -1
    @cython.locals(waiting=Waiting, figures=ChannelFigures, offer=Offer, span=Span,
                   count=Py_ssize_t)
    cpdef bint dispatch_next(self, double now) except -1
    @cython.locals(publication=Publication, age=double)
    cdef bint _has_expired(self, Span span, double now) except -1
    cdef Py_ssize_t _capacity(
        self, Span span, Py_ssize_t first, Py_ssize_t most, member) except -1
    cdef _give_up(self, Span span)
    @cython.locals(consumer=Session, connection=Connection, policy=DeliveryPolicy,
                   before=Py_ssize_t, latest=double)
    cdef _dispatch(self, Span source, member, Py_ssize_t attempts, double now)
    @cython.locals(publication=Publication, first=Py_ssize_t, count=Py_ssize_t, qos=int,
                   retain=bint, identifiers=tuple, sent=Span, waits=bint, noted=bint,
                   commit="long long")
    cdef _send(self, Span source, member, Session consumer, Connection connection,
               Py_ssize_t attempts, double now)
