import cython

@cython.final
cdef class Instant:
    cdef readonly double monotonic
    cdef readonly long long wall
