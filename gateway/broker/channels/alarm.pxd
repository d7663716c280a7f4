import cython

from gateway.broker.deadlines cimport Deadlines

@cython.final
cdef class Alarm:
    cdef Deadlines _deadlines
    cdef object _on_due
    cdef readonly double second

    cpdef set(self, double second)
