import cython

from gateway.storage.outbox.outbox_row cimport OutboxRow

@cython.final
cdef class DeferredRows:
    cdef dict _by_wait
    cdef object _on_late
    cdef object _timer
    cdef object _write
    cdef object _writer

    cpdef add(self, OutboxRow row, wait)
    cpdef bint discard(self, identifier) except -1
