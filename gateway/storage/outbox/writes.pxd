import cython

from gateway.counters cimport Counters
from gateway.storage.outbox.row cimport OutboxRow

@cython.final
cdef class DeferredRows:
    cdef dict _by_wait
    cdef object _on_late
    cdef object _timer
    cdef object _write
    cdef object _writer

    cpdef add(self, OutboxRow row, wait)
    cpdef bint discard(self, identifier) except -1

@cython.final
cdef class OutboxWrites:
    cdef Counters _counters
    cdef DeferredRows _deferred
    cdef dict _delivered
    cdef object _group_commit
    cdef dict _last_ids
    cdef dict _live
    cdef object _pending
    cdef object _reader
    cdef dict _removing
    cdef object _uplinks
    cdef object _writer
    cdef readonly object committed_id
    cdef readonly dict delivering

    cpdef bint may_be_sent(self, OutboxRow row) except -1
    cpdef add(self, OutboxRow row, commit_within, wait, barrier)
    @cython.locals(row=OutboxRow)
    cpdef delete(self, rows, outcome, commit_within)
