import cython

from gateway.routing.where.figures cimport Figures

cdef class Budget:
    cdef public long long evaluated
    cdef public long long null
    cdef public long long passed
    cdef public long long slow
    cdef object _promoted
    cdef object _slowest
    cdef object _timer
    cdef object _unsaid
    cdef object _warned

    @cython.locals(figures=Figures)
    cpdef bint passes(self, where, message, client_id) except -1
    @cython.locals(figures=Figures)
    cpdef count_passed(self, where)
