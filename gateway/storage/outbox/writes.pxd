import cython

from gateway.counters cimport Counters
from gateway.mqtt.output cimport Barrier
from gateway.storage.engine.pending_batch cimport PendingBatch
from gateway.storage.outbox.row cimport OutboxRow

@cython.final
cdef class Live:
    cdef public double delay
    cdef readonly object sender
    cdef readonly int uplink

@cython.final
cdef class DeferredRows:
    cdef double _armed_for
    cdef object _on_late
    cdef object _timer
    cdef object _write
    cdef object _writer
    cdef readonly dict rows

    @cython.locals(due=double)
    cpdef add(self, OutboxRow row, double wait)
    cdef _arm(self, double due)

@cython.final
cdef class OutboxWrites:
    cdef Counters _counters
    cdef DeferredRows _deferred
    cdef dict _delivered
    cdef object _group_commit
    cdef dict _last_ids
    cdef dict _live
    cdef PendingBatch _pending
    cdef object _reader
    cdef dict _removing
    cdef object _uplinks
    cdef object _writer
    cdef readonly object committed_id
    cdef readonly dict delivering

    cpdef bint may_be_sent(self, OutboxRow row) except -1
    @cython.locals(live=Live)
    cpdef add(self, OutboxRow row, commit_within, double wait, Barrier barrier)
    @cython.locals(row=OutboxRow)
    cpdef delete(self, rows, outcome, commit_within)
