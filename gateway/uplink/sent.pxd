import cython

@cython.final
cdef class Sent:
    cdef public double at
    cdef readonly bint batched
    cdef public double deadline
    cdef readonly Py_ssize_t messages
    cdef readonly object own
    cdef public Py_ssize_t paced
    cdef readonly object rows
    cdef public Py_ssize_t size
    cdef readonly bytes status
