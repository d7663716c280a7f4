import cython

from gateway.broker.deadlines cimport Deadlines
from gateway.counters cimport Counters
from gateway.routing.budget cimport Budget
from gateway.routing.retained.retained cimport Cursor, RetainedLog, RetainedMessages
from gateway.session.session cimport Session

@cython.final
cdef class Replay:
    cdef readonly Cursor cursor
    cdef public object stored
    cdef public bint noted
    cdef public bint scans
    cdef readonly Session session
    cdef public object subscription

@cython.final
cdef class Replays:
    cdef Budget _budget
    cdef Py_ssize_t _bytes
    cdef Counters _counters
    cdef Deadlines _deadlines
    cdef Py_ssize_t _messages
    cdef RetainedMessages _retained
    cdef object _ring
    cdef double _turn
    cdef dict _waiting
    cdef long long _work
    cdef readonly Py_ssize_t count
    cdef public Py_ssize_t maximum_of_one
    cdef public Py_ssize_t turn_messages

    @cython.locals(cursor=Cursor, retained=RetainedMessages, found=list, most=Py_ssize_t, fitting=Py_ssize_t, size=Py_ssize_t, wanted=list)
    cdef bint _advance(self, Replay one, instant) except -1
    @cython.locals(retained=RetainedMessages, cursor=Cursor, cost=Py_ssize_t, before=Py_ssize_t,
                   most=Py_ssize_t, found=list, fitting=Py_ssize_t, size=Py_ssize_t, wanted=list)
    cdef _send_some(self, Replay one, instant)
    @cython.locals(free=Py_ssize_t, size=Py_ssize_t, most=Py_ssize_t, number=Py_ssize_t)
    cdef tuple _fitting(self, Replay one, list messages)
    cdef bint _withholds(self, Replay one, message) except -1
    @cython.locals(session=Session)
    cdef _send(self, Replay one, list messages, list wanted, Py_ssize_t size, instant)
