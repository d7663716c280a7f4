import cython

from gateway.counters cimport Counters

@cython.final
cdef class DurabilityClasses:
    cdef readonly dict _cache
    cdef list _clients
    cdef Counters _counters
    cdef list _topics
    cdef readonly object default

    cpdef of_client(self, str client_id, of_listener)
    cpdef commit_within(self, of_client, str topic)
    cdef _look_up(self, str topic)
