import cython

from gateway.counters cimport Counters
from gateway.storage.outbox.bounds cimport OutboxBounds, OutboxStream
from gateway.mqtt.output cimport Barrier
from gateway.storage.outbox.row cimport OutboxRow, row_size
from gateway.storage.outbox.writes cimport OutboxWrites

@cython.final
cdef class Outbox:
    cdef Counters _counters
    cdef object _database
    cdef object _due
    cdef object _expiry
    cdef object _reader
    cdef object _totals
    cdef object _writer
    cdef readonly OutboxBounds bounds
    cdef readonly set lanes
    cdef readonly list on_change
    cdef readonly list on_outcome
    cdef readonly object oldest
    cdef readonly object uplinks
    cdef public object recalled
    cdef readonly OutboxWrites writes

    @cython.locals(row=OutboxRow, size=Py_ssize_t)
    cpdef admits(self, rows)
    @cython.locals(stream=OutboxStream, bounds=OutboxBounds)
    cpdef add(self, OutboxRow row, commit_within=*, double wait=*, Barrier barrier=*)
    @cython.locals(row=OutboxRow, several=bint, deleted=list)
    cpdef remove(self, rows, outcome, reason=*, commit_within=*, uplink=*)
    cpdef bint claim(self, OutboxRow row, now, uplink=*) except -1
    cpdef end_turn(self)
    cdef _evict_for(self, OutboxRow row)
    cdef _report(self, rows, outcome, reason)
