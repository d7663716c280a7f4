import cython

@cython.final
cdef class DeliveryPolicy:
    cdef readonly Py_ssize_t count
    cdef readonly double delay
    cdef readonly double every
    cdef readonly bint holds
    cdef readonly bint own
    cdef readonly Py_ssize_t size
    cdef readonly double step
