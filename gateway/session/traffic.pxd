import cython

@cython.final
cdef class Traffic:
    cdef public bint unfinished
    cdef public long long bytes_received
    cdef public long long bytes_sent
    cdef public long long cost
    cdef public long long count_at
    cdef public long long full_at
    cdef public long long messages_received
    cdef public long long messages_sent
    cdef public long long network_received
    cdef public long long network_sent
    cdef public long long queue_at
    cdef public long long turns

    cpdef begin_turn(self)
