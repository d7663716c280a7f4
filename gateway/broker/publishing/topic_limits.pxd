import cython

@cython.final
cdef class TopicLimits:
    cdef Py_ssize_t _always_within
    cdef readonly Py_ssize_t maximum_length
    cdef readonly Py_ssize_t maximum_levels

    cpdef str fault(self, str topic)
