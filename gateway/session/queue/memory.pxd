import cython

from gateway.mqtt.publication cimport Publication
from gateway.session.span cimport Span

@cython.final
cdef class QueueMemory:
    cdef object _released
    cdef public long long bytes
    cdef public Py_ssize_t deliveries
    cdef public long long disk_bytes
    cdef public dict dropped
    cdef public Py_ssize_t held_back
    cdef public long long maximum_bytes
    cdef public long long maximum_disk_bytes
    cdef public Py_ssize_t messages
    cdef public object on_released
    cdef public Py_ssize_t paged
    cdef public long long paged_bytes

    cpdef page(self, Py_ssize_t deliveries, long long size)
    cpdef charge(self, long long size)
    @cython.locals(publication=Publication)
    cpdef add(self, Span span)
    @cython.locals(publication=Publication)
    cpdef remove(self, Span span)
    cpdef release(self, spans)
    cpdef bint forget_some(self, Py_ssize_t most)
