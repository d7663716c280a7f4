import cython

from gateway.session.span cimport Span

@cython.final
cdef class PagedTail:
    cdef readonly long long after
    cdef readonly long long asked_up_to
    cdef public object between
    cdef public long long bytes
    cdef public bint loading
    cdef public Py_ssize_t messages
    cdef readonly long long up_to

    @cython.locals(before="long long")
    cpdef push(self, Span span)
    cpdef bint holds(self, long long sequence) except -1
