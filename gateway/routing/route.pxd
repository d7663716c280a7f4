import cython

@cython.final
cdef class Route:
    cdef readonly object asked
    cdef readonly object groups
    cdef readonly object indexes
    cdef readonly object own
    cdef readonly bint plain
    cdef readonly dict recipients

cpdef Py_ssize_t text_size(str text) except -1

cpdef int kind(int qos, bint retain) except -1
