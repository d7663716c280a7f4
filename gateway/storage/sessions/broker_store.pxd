import cython

from gateway.storage.engine.gathering cimport Gathering

@cython.final
cdef class BrokerStore:
    cdef object _forward
    cdef long long _forward_batch
    cdef readonly Gathering pending
    cdef object _retained
    cdef readonly object _sessions
    cdef object _wills
