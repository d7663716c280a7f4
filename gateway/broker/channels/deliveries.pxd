import cython

from gateway.session.session cimport Session
from gateway.session.span cimport Span

@cython.final
cdef class Delivery:
    cdef readonly Py_ssize_t attempts
    cdef readonly Session consumer
    cdef public double due
    cdef readonly double given
    cdef public Py_ssize_t left
    cdef public bint noted
    cdef readonly Span sent
    cdef readonly Span source

    cpdef Py_ssize_t original(self, Py_ssize_t number) except -1

@cython.final
cdef class Deliveries:
    cdef dict _by_span

    cpdef Delivery find(self, Span span)
    cpdef add(self, Delivery delivery)
    cpdef settle(self, Delivery delivery, Py_ssize_t count)
