import cython

@cython.final
cdef class Changes:
    cdef public dict attempts
    cdef public dict begun
    cdef public dict deferred
    cdef public list gone
    cdef public Py_ssize_t gone_messages
    cdef public dict incoming
    cdef public dict enqueued
    cdef public dict progress
    cdef public dict subscriptions
