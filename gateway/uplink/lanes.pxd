import cython

from gateway.storage.outbox.outbox cimport Outbox
from gateway.storage.outbox.row cimport OutboxRow

@cython.final
cdef class RowCursor:
    cdef object _end
    cdef object _lane
    cdef object _outbox
    cdef object _stream
    cdef object _uplink
    cdef public object position
    cdef public bint reading
    cdef readonly object rows

    cpdef ready(self)
    cpdef pop(self)

@cython.final
cdef class Lanes:
    cdef RowCursor _backlog
    cdef object _boundary
    cdef object _fresh_bytes
    cdef RowCursor _live
    cdef object _not_fresh
    cdef Outbox _outbox
    cdef RowCursor _recalled
    cdef object _waited
    cdef readonly object fresh

    @cython.locals(live=RowCursor)
    cpdef bint accepts(self, OutboxRow row) except -1
    cpdef push(self, OutboxRow row)
    cpdef OutboxRow next_fresh(self)
    cpdef bint waited(self, OutboxRow row) except -1
    cpdef next_live(self)
    cpdef next_waited(self)
