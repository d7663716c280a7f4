import cython

from gateway.storage.outbox.outbox_row cimport OutboxRow
from gateway.storage.outbox.streams.stream cimport OutboxStream

@cython.final
cdef class OutboxStreams:
    cdef object _is_taken
    cdef dict _streams
    cdef public object bytes
    cdef public object log_excess
    cdef readonly object retention
    cdef public object rows

    @cython.locals(stream=OutboxStream)
    cpdef OutboxStream of(self, name)
    cpdef over(self, rows=*, size=*)
    @cython.locals(stream=OutboxStream)
    cpdef refuses(self, rows)
    cpdef replaced(self, OutboxRow row)
    cpdef next_to_go(self, OutboxRow row=*)
    cpdef added(self, OutboxRow row)
    @cython.locals(row=OutboxRow)
    cpdef removed(self, rows)
    cdef _of_stream(self, OutboxStream stream, OutboxRow row)
    cdef _of_all(self, OutboxRow row)
