import cython

@cython.final
cdef class Route:
    cdef tuple _earlier
    cdef readonly tuple asking
    cdef readonly bint plain
    cdef readonly int kind
    cdef readonly bytes own
    cdef readonly tuple recipients

    @cython.locals(earlier=tuple)
    cpdef tuple kept(self, int number)
    cpdef keep(self, int number, tuple recipients)

cpdef Py_ssize_t text_size(str text) except -1

cpdef int kind(int qos, bint retain) except -1
