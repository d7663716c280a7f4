import cython

from gateway.mqtt.output cimport Pending

@cython.final
cdef class PendingBatch:
    cdef Pending _pending
    cdef public long long deferred_commit
    cdef long long _next_commit
    cdef public object writer

    cpdef changed(self, double commit_within=*)
    cpdef defer(self)
    cpdef defer_to_batch(self)
    cpdef committed(self, long long batch)
    cpdef put_off(self)
    cpdef commit_number(self)
