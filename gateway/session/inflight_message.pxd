import cython

from gateway.mqtt.message cimport Message

@cython.final
cdef class InflightAlone:
    cdef double _arrived
    cdef bytes _data
    cdef object _delivery
    cdef object _origin
    cdef object _received_at
    cdef Py_ssize_t _start
    cdef public bint noted
    cdef public Py_ssize_t order
    cdef public bint released
    cdef readonly Py_ssize_t size
