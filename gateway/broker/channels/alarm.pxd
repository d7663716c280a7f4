import cython

from gateway.broker.deadlines cimport Deadlines

@cython.final
cdef class Alarm:
    cdef Deadlines _deadlines
    cdef object _look_after
    cdef readonly double second

    cpdef set(self, double second)
