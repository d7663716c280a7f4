import cython

from gateway.session.queue.delivery_queue cimport DeliveryQueue
from gateway.session.session cimport Session
from gateway.session.span cimport Span

@cython.final
cdef class EarlierRun:
    cdef dict _attempts
    cdef long long _last
    cdef readonly bint counted

    cpdef Py_ssize_t attempts(self, Span span) except -1
    cpdef bint may_be_dispatched(self, Span span) except -1

@cython.final
cdef class Offer:
    cdef readonly Py_ssize_t above
    cdef readonly Py_ssize_t attempts
    cdef readonly Session avoid
    cdef readonly Span span

@cython.final
cdef class ReturnedMessages:
    cdef object _held
    cdef Py_ssize_t _held_bytes
    cdef list _later
    cdef object _next
    cdef Py_ssize_t _order
    cdef public Py_ssize_t maximum_held

    cpdef Offer first(self)
    cpdef Offer pop(self)

@cython.final
cdef class Waiting:
    cdef public EarlierRun earlier
    cdef public object last_values
    cdef public bint paused
    cdef public object paused_filters
    cdef readonly DeliveryQueue queue
    cdef readonly ReturnedMessages returned

    cpdef bint passes(self) except -1
    @cython.locals(offer=Offer, span=Span)
    cpdef Offer first(self, double now)
    cpdef Span pop(self, Py_ssize_t count)
    @cython.locals(span=Span)
    cdef Span _pop_queue(self, Py_ssize_t count)
