import cython

from gateway.storage.outbox.outbox_row cimport OutboxRow

@cython.final
cdef class OutboxStream:
    cdef bint _drops
    cdef public object bytes
    cdef readonly str bytes_name
    cdef readonly bint has_head
    cdef readonly object head
    cdef public object known_to
    cdef public object last_id
    cdef readonly object latest
    cdef public object rows
    cdef readonly str rows_name
    cdef readonly object settings

    @cython.locals(knew_all=bint)
    cpdef bint added(self, OutboxRow row) except -1
    cpdef removed(self, OutboxRow row)
    cpdef over(self, rows=*, size=*)
