import cython

from gateway.session.span cimport Span

@cython.final
cdef class EarlierRun:
    cdef dict _attempts
    cdef long long _last
    cdef readonly bint counted

    cpdef Py_ssize_t attempts(self, Span span) except -1
    cpdef bint left(self, Span span) except -1
