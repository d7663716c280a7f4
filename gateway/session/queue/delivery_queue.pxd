import cython

from gateway.session.queue.usage cimport QueueUsage
from gateway.session.span cimport Span

cdef class DeliveryQueue(QueueUsage):
    cdef readonly object _head
    cdef readonly long long _head_bytes
    cdef Py_ssize_t _head_messages
    cdef object _held
    cdef long long _held_bytes
    cdef object _newest
    cdef public Py_ssize_t head_messages
    cdef readonly Py_ssize_t held_back
    cdef readonly object _tail

    cpdef append(self, Span span)
    cpdef Span first(self)
    @cython.locals(span=Span, taken=Span, rest=Span)
    cpdef Span take(self, Py_ssize_t count)
    @cython.locals(span=Span)
    cpdef bint hold_back(self, Py_ssize_t count) except -1
    cpdef take_up_held_back(self)
    cdef _count_held(self, Py_ssize_t messages, long long size)
    cdef _to_head(self, Span span)
    cdef _refill(self)
    cdef _lose(self, Py_ssize_t messages, long long size)
