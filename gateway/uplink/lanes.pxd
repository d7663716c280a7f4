import cython

from gateway.storage.outbox.outbox cimport Outbox
from gateway.storage.outbox.outbox_row cimport OutboxRow
from gateway.uplink.row_cursor cimport RowCursor

@cython.final
cdef class Lanes:
    cdef RowCursor _backlog
    cdef object _boundary
    cdef object _fresh
    cdef object _fresh_bytes
    cdef RowCursor _live
    cdef object _not_fresh
    cdef Outbox _outbox
    cdef RowCursor _recalled
    cdef object _waited

    cpdef bint takes(self, OutboxRow row) except -1
    cpdef push(self, OutboxRow row)
    cpdef OutboxRow next_fresh(self)
    cpdef bint waited(self, OutboxRow row) except -1
    cpdef next_live(self)
    cpdef next_waited(self)
