import cython

@cython.final
cdef class ChannelFigures:
    cdef object _latencies
    cdef public long long acknowledged
    cdef public long long dead_lettered
    cdef public long long delivered
    cdef public long long dropped
    cdef public long long expired
    cdef public long long filtered
    cdef public long long outside_size
    cdef public long long received
    cdef public long long requeued
    cdef public long long timed_out

    cpdef note_latency(self, double seconds, Py_ssize_t count)
