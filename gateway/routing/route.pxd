import cython

@cython.final
cdef class Route:
    cdef readonly object asked
    cdef readonly object groups
    cdef readonly object indexes
    cdef readonly object own
    cdef readonly bint plain
    cdef readonly dict recipients

cpdef int kind(int qos, bint retain) except -1
