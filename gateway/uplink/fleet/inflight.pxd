import cython

from gateway.counters cimport Counters
from gateway.storage.outbox.outbox cimport Outbox
from gateway.uplink.sent cimport Sent

@cython.final
cdef class Inflight:
    cdef set _separate
    cdef set _codes_logged
    cdef object _clock
    cdef object _context
    cdef Counters _counters
    cdef list _delivered
    cdef object _hold
    cdef Outbox _outbox
    cdef list _own_later
    cdef object _pacing
    cdef set _refused
    cdef dict _sent
    cdef object _suspects
    cdef object _uplink
    cdef readonly list apart
    cdef public Py_ssize_t bytes
    cdef public double held_until
    cdef public object live
    cdef public Py_ssize_t messages
    cdef readonly object refusals
    cdef public str trouble
    cdef public Py_ssize_t unanswered
    cdef public bint watched

    @cython.locals(count=Py_ssize_t, messages=Py_ssize_t, removing=Py_ssize_t)
    cpdef bint has_capacity(self, Py_ssize_t window, Py_ssize_t receive_maximum) except -1
    cpdef sent(self, mid, Sent sent)
    cpdef again(self)
    @cython.locals(sent=Sent, now=double)
    cpdef acknowledged(self, mid, code)
    cpdef settle(self)
    cdef _rows_refused(self, rows, code)
    cdef _rows_delivered(self, rows)
