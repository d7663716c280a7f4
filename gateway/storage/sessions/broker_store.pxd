import cython

from gateway.storage.engine.pending_batch cimport PendingBatch

@cython.final
cdef class BrokerStore:
    cdef object _forward
    cdef long long _forward_batch
    cdef readonly PendingBatch pending
    cdef object _retained
    cdef readonly object _sessions
    cdef object _wills
