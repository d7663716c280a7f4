import cython

@cython.final
cdef class Outcome:
    cdef readonly object code
    cdef readonly Py_ssize_t count
    cdef readonly object refusal

cpdef Outcome refused(code)
