import cython

from gateway.storage.outbox.outbox_row cimport OutboxRow
from gateway.storage.outbox.streams.stream cimport OutboxStream
from gateway.storage.outbox.streams.streams cimport OutboxStreams
from gateway.storage.outbox.writes cimport OutboxWrites

@cython.final
cdef class Outbox:
    cdef object _batches
    cdef object _database
    cdef object _expiry
    cdef object _fetched
    cdef object _figures
    cdef object _looks
    cdef object _reader
    cdef object _recent
    cdef OutboxStreams _streams
    cdef object _totals
    cdef object _writer
    cdef readonly set lanes
    cdef readonly list on_change
    cdef readonly list on_outcome
    cdef readonly object uplinks
    cdef public object recalled
    cdef readonly OutboxWrites writes

    cpdef removing(self, uplink=*)
    @cython.locals(row=OutboxRow)
    cpdef admits(self, rows)
    @cython.locals(stream=OutboxStream)
    cpdef add(self, OutboxRow row, within=*, wait=*, barrier=*)
    @cython.locals(row=OutboxRow)
    cpdef remove(self, rows, outcome, reason=*, within=*, uplink=*)
    cpdef bint take(self, OutboxRow row, now, uplink=*) except -1
    cpdef end_turn(self)
    cdef _make_room(self, OutboxRow row)
    @cython.locals(row=OutboxRow)
    cdef _remove(self, rows, outcome, within)
    cdef _tell(self, rows, outcome, reason)
