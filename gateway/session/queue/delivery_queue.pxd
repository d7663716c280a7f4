import cython

from gateway.mqtt.publication cimport Publication
from gateway.session.queue.memory cimport QueueMemory
from gateway.session.span cimport Span

cdef Py_ssize_t _SPAN_OVERHEAD
cdef long long _MAXIMUM_MEMORY

cdef class DeliveryQueue:
    cdef long long _bytes
    cdef double _expires
    cdef QueueMemory _memory
    cdef readonly long long _memory_bytes
    cdef readonly Py_ssize_t messages
    cdef public long long maximum_bytes
    cdef public Py_ssize_t maximum_messages
    cdef readonly object _head
    cdef readonly long long _head_bytes
    cdef Py_ssize_t _head_messages
    cdef object _held
    cdef long long _held_bytes
    cdef object _newest
    cdef public Py_ssize_t head_messages
    cdef readonly Py_ssize_t held_back
    cdef public bint stays
    cdef readonly long long written
    cdef readonly object _tail

    cpdef bint over(self, Py_ssize_t more) except -1
    cpdef bint at_bound_with(self, Py_ssize_t more) except -1
    @cython.locals(memory=QueueMemory, size="long long", left="long long", fitting=Py_ssize_t)
    cpdef Py_ssize_t capacity(self, Publication publication, Py_ssize_t first, Py_ssize_t most) except -1
    @cython.locals(disk_bytes="long long")
    cdef _add(self, Span span)
    @cython.locals(disk_bytes="long long")
    cdef _remove(self, Span span)
    @cython.locals(publication=Publication)
    cdef _remember(self, Span span)
    cdef _forget(self, Span span)
    cdef _add_paged(self, Py_ssize_t messages, long long size)
    cpdef append(self, Span span)
    cpdef Span first(self)
    @cython.locals(span=Span, first_part=Span, rest=Span)
    cpdef Span pop(self, Py_ssize_t count)
    @cython.locals(span=Span)
    cpdef bint hold_back(self, Py_ssize_t count) except -1
    cpdef queue_held_back(self)
    cdef _count_held(self, Py_ssize_t messages, long long size)
    cdef _to_head(self, Span span)
    cdef _refill(self)
    cdef _lose(self, Py_ssize_t messages, long long size)
