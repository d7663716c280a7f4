import cython

from gateway.broker.channels.offer cimport Offer

@cython.final
cdef class ReturnedMessages:
    cdef object _held
    cdef Py_ssize_t _held_bytes
    cdef list _later
    cdef object _next
    cdef Py_ssize_t _order
    cdef readonly Py_ssize_t maximum_held

    cpdef Offer first(self)
    cpdef Offer pop(self)
