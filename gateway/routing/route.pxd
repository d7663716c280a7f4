import cython

@cython.final
cdef class Route:
    cdef tuple _earlier
    cdef readonly object asked
    cdef readonly object groups
    cdef readonly object indexes
    cdef readonly int kind
    cdef readonly bytes own
    cdef readonly bint plain
    cdef readonly list recipients

    @cython.locals(earlier=tuple)
    cpdef list kept(self, int number)
    cpdef keep(self, int number, list recipients)

cpdef Py_ssize_t text_size(str text) except -1

cpdef int kind(int qos, bint retain) except -1
