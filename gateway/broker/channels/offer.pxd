import cython

from gateway.session.session cimport Session
from gateway.session.span cimport Span

@cython.final
cdef class Offer:
    cdef readonly Py_ssize_t above
    cdef readonly Py_ssize_t attempts
    cdef readonly Session avoid
    cdef readonly Span span
