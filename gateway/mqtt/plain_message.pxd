import cython

@cython.final
cdef class Origin:
    cdef readonly double arrived
    cdef readonly object client_id
    cdef readonly object commit_within
    cdef readonly int qos
    cdef readonly object received_at
    cdef readonly object username

@cython.final
cdef class PlainMessage:
    cdef readonly Origin origin
    cdef readonly bytes payload
    cdef readonly str topic
