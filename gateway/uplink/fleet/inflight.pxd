import cython

from gateway.counters cimport Counters
from gateway.storage.outbox.outbox cimport Outbox
from gateway.storage.outbox.writes cimport Live
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
    cdef double _puback_timeout
    cdef set _refused
    cdef object _report
    cdef dict _sent
    cdef object _suspects
    cdef object _uplink
    cdef Py_ssize_t _window
    cdef readonly list apart
    cdef public Py_ssize_t bytes
    cdef public double held_until
    cdef public Live live
    cdef public Py_ssize_t messages
    cdef readonly object refusals
    cdef public Py_ssize_t unanswered
    cdef public bint watched

    @cython.locals(count=Py_ssize_t, messages=Py_ssize_t, removing=Py_ssize_t)
    cpdef bint has_capacity(self, Py_ssize_t window, Py_ssize_t receive_maximum) except -1
    cpdef sent(self, mid, Sent sent)
    cpdef again(self)
    @cython.locals(sent=Sent, now=double, delay=double)
    cpdef acknowledged(self, mid, code)
    @cython.locals(removing=Py_ssize_t, pressing=bint)
    cpdef settle(self)
    cdef _rows_refused(self, rows, code)
    cdef _rows_delivered(self, rows)
