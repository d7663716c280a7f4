import cython

@cython.final
cdef class WakeUp:
    cdef public double at
    cdef public object ring
