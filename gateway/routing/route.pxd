import cython

@cython.final
cdef class Route:
    cdef readonly tuple always
    cdef readonly bint selective
    cdef readonly tuple conditional
    cdef readonly bint crowded
    cdef readonly tuple groups
    cdef readonly tuple indexes
    cdef readonly tuple inline
    cdef readonly tuple match
    cdef readonly tuple sessions
    cdef readonly Py_ssize_t size
    cdef public Py_ssize_t topics

cpdef Py_ssize_t text_size(str text) except -1
