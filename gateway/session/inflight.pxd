import cython

from gateway.mqtt.publication cimport Publication
from gateway.session.queue.memory cimport QueueMemory
from gateway.session.span cimport Span

cdef Py_ssize_t _MAXIMUM_PACKET_ID
cdef long long _MAXIMUM_BYTES

@cython.final
cdef class Inflight:
    cdef long long _bytes
    cdef int _maximum
    cdef public int _next
    cdef dict _spans
    cdef readonly long long held
    cdef public int limit
    cdef readonly set released
    cdef readonly object resend
    cdef readonly set withheld

    @cython.locals(spans=dict, packet_id=Py_ssize_t, free=Py_ssize_t)
    cpdef Py_ssize_t capacity(self, Publication publication, Py_ssize_t first, Py_ssize_t most) except -1
    @cython.locals(spans=dict, packet_id=Py_ssize_t, number=Py_ssize_t)
    cdef Py_ssize_t _capacity_for_several(
        self, Publication publication, Py_ssize_t first, Py_ssize_t most) except -1
    @cython.locals(packet_id=Py_ssize_t, spans=dict, count=Py_ssize_t, number=Py_ssize_t,
                   publication=Publication, size="long long")
    cpdef add(self, Span span)
    cpdef Span find(self, Py_ssize_t packet_id)
    @cython.locals(spans=dict, end=Py_ssize_t, packet_id=Py_ssize_t, span=Span, index=Py_ssize_t,
                   expected=Py_ssize_t, count=Py_ssize_t, publication=Publication,
                   size="long long")
    cpdef Py_ssize_t remove(self, identifiers, Py_ssize_t start) except -1
    cdef _forget_resend(self, Py_ssize_t first, Py_ssize_t end)
    cdef _forget_withheld(self, Span span, Py_ssize_t first, Py_ssize_t end)
    cdef _make_up_for_withheld(self)
    cpdef release(self, Py_ssize_t packet_id)
    cpdef begin(self, Py_ssize_t limit)
    cpdef charge(self, QueueMemory memory)
    cpdef refund(self, QueueMemory memory)
