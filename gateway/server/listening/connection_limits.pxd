import cython

from gateway.counters cimport Counters

@cython.final
cdef class Room:
    cdef public Py_ssize_t maximum
    cdef public Py_ssize_t taken

@cython.final
cdef class ConnectionLimits:
    cdef Counters _counters
    cdef object _name
    cdef object _rate
    cdef Room _room
    cdef double _silent_until
    cdef readonly Py_ssize_t maximum
    cdef readonly Py_ssize_t taken

    cpdef judge(self, double now)
    cpdef leave(self)
    cdef _take(self, Py_ssize_t places)
    cdef _turn_away(self, double now, cause, verdict)
