import cython

from gateway.counters cimport Counters

@cython.final
cdef class Room:
    cdef public Py_ssize_t maximum
    cdef public Py_ssize_t taken
    cdef readonly list newcomers

@cython.final
cdef class ConnectionLimits:
    cdef Counters _counters
    cdef object _name
    cdef object _newcomers
    cdef object _rate
    cdef Room _room
    cdef double _silent_until
    cdef readonly Py_ssize_t maximum
    cdef readonly Py_ssize_t taken

    cpdef watch(self, newcomers)
    @cython.locals(room=Room, full=bint)
    cpdef judge(self, double now)
    cpdef leave(self)
    cdef _take(self, Py_ssize_t places)
    cdef bint _make_room(self, double now, newcomers) except -1
    cdef _turn_away(self, double now, cause, verdict)
    cdef _tell(self, double now, what)
