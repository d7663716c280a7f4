import cython

@cython.final
cdef class DurabilityClasses:
    cdef list _clients
    cdef list _topics
    cdef readonly object default

    cpdef of_client(self, str client_id, of_listener)
    cpdef of_topic(self, str topic)
