import cython

from gateway.broker.channels.alarm cimport Alarm
from gateway.broker.channels.figures cimport ChannelFigures
from gateway.broker.channels.waiting cimport ReturnedMessages
from gateway.mqtt.publication cimport Publication
from gateway.session.session cimport Session
from gateway.session.span cimport Span

cdef double _NOTED_AFTER

@cython.final
cdef class Delivery:
    cdef public Py_ssize_t attempts
    cdef readonly Session consumer
    cdef public double due
    cdef readonly double given
    cdef public Py_ssize_t remaining
    cdef public bint noted
    cdef public Py_ssize_t oldest
    cdef readonly Span sent
    cdef readonly Span source

    @cython.locals(source=Span, first=Py_ssize_t)
    cpdef bint is_of(self, Publication publication, Py_ssize_t number) except -1

@cython.final
cdef class Deliveries:
    cdef Alarm _alarm
    cdef dict _by_span
    cdef Session _channel
    cdef object _come_back
    cdef ChannelFigures _figures
    cdef ReturnedMessages _returned
    cdef object _stays
    cdef public double timeout
    cdef bint _unnoted
    cdef public bint has_dead_letters
    cdef public dict late

    @cython.locals(due=double, delivery=Delivery)
    cpdef Delivery begin(
        self, Span source, Span sent, Session consumer, Py_ssize_t attempts, double now, bint noted)
    @cython.locals(first=Delivery)
    cpdef double next_due(self, double now) except -1
    @cython.locals(delivery=Delivery)
    cpdef finished(self, Span span, Py_ssize_t number, Py_ssize_t count)
    @cython.locals(delivery=Delivery)
    cpdef return_message(self, Span span, Py_ssize_t number)
    @cython.locals(delivery=Delivery)
    cpdef too_large(self, Span span, Py_ssize_t number)
    cdef _settle(self, Delivery delivery, Py_ssize_t count)
    cdef _requeue(self, Delivery delivery, Py_ssize_t number, double second=*)
    cdef _note(self, Delivery delivery, list numbers)
