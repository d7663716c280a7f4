import cython

from gateway.storage.engine.pending_batch cimport PendingBatch

@cython.final
cdef class WillStore:
    cdef readonly dict changed
    cdef PendingBatch _pending
    cdef set _kept

    cpdef drop(self, client_id)
