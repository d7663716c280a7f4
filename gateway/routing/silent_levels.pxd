import cython

cdef Py_ssize_t _LONGEST_LEVEL
cdef Py_ssize_t _MAXIMUM_LEVELS

@cython.final
cdef class SilentLevels:
    cdef object _direct
    cdef object _indirect
    cdef set _silent

    cpdef forget(self)
    @cython.locals(level=str, silent=set)
    cpdef bint has(self, str topic) except -1
