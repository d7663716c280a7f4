import cython

from gateway.storage.outbox.deferred_rows cimport DeferredRows
from gateway.storage.outbox.outbox_row cimport OutboxRow

@cython.final
cdef class OutboxWrites:
    cdef object _batches
    cdef DeferredRows _deferred
    cdef object _fetched
    cdef object _figures
    cdef object _group_commit
    cdef object _pending
    cdef dict _live
    cdef object _uplinks
    cdef object _reader
    cdef object _recent
    cdef object _writer

    cpdef answered(self, delay, uplink=*)
    cpdef bint may_leave(self, OutboxRow row) except -1
    cpdef add(self, OutboxRow row, within, wait, barrier)
    @cython.locals(row=OutboxRow)
    cpdef remove(self, rows, outcome, within)
    cdef _group(self, within, wait)
    cdef _defer(self, OutboxRow row, wait, barrier)
