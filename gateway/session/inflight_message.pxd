import cython

from gateway.mqtt.connection cimport Connection
from gateway.mqtt.message cimport Message
from gateway.mqtt.output cimport Pledge

@cython.final
cdef class InflightAlone:
    cdef bytes _data
    cdef object _delivery
    cdef object _received_at
    cdef Py_ssize_t _start
    cdef readonly double arrived
    cdef public bint noted
    cdef public object on_opened
    cdef public Py_ssize_t order
    cdef readonly object origin
    cdef public long long place
    cdef public Pledge pledge
    cdef public Connection publisher
    cdef public bint released
    cdef readonly Py_ssize_t size

    cpdef open(self)
