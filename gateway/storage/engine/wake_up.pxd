import cython

@cython.final
cdef class WakeUp:
    cdef public double at
    cdef public object ring

@cython.final
cdef class CommitDue:
    cdef readonly double at
    cdef readonly double commit_within
    cdef public bint wanted
    cdef double _after_turn

    cpdef clear(self)
    cpdef schedule(self, double commit_within, double commit_delay, double stretch)
    cpdef end_turn(self)
