import cython

from gateway.storage.outbox.row cimport OutboxRow

@cython.final
cdef class OutboxStream:
    cdef public object bytes
    cdef readonly str bytes_name
    cdef readonly bint gives_up
    cdef readonly bint has_head
    cdef readonly object head
    cdef public object known_to
    cdef public object last_id
    cdef readonly object latest
    cdef readonly object maximum_bytes
    cdef readonly object maximum_rows
    cdef readonly bint rejects
    cdef public object rows
    cdef readonly str rows_name
    cdef readonly object settings

    cpdef over(self, rows=*, size=*)

@cython.final
cdef class OutboxBounds:
    cdef object _is_claimed
    cdef bint _rejects
    cdef public object bytes
    cdef public bint has_removed
    cdef public object last_id
    cdef public object log_excess
    cdef readonly object maximum_bytes
    cdef readonly object maximum_rows
    cdef readonly bint rejects
    cdef readonly object retention
    cdef public object rows
    cdef readonly dict streams

    @cython.locals(stream=OutboxStream)
    cpdef OutboxStream of(self, name)
    cpdef over(self, rows=*, size=*)
    @cython.locals(row=OutboxRow, stream=OutboxStream)
    cpdef refuses(self, rows)
    cpdef bint crowded(self, OutboxStream stream, OutboxRow row) except -1
    cpdef replaced(self, OutboxRow row)
    cpdef next_to_evict(self, OutboxRow row=*)
    @cython.locals(knew_all=bint)
    cpdef bint added(self, OutboxStream stream, OutboxRow row) except -1
    @cython.locals(row=OutboxRow, stream=OutboxStream)
    cpdef removed(self, rows)
    cdef _of_stream(self, OutboxStream stream, OutboxRow row)
    cdef _of_all(self, OutboxRow row)
