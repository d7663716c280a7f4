import cython

@cython.final
cdef class ChannelFigures:
    cdef object _latencies
    cdef list _unmeasured
    cdef public long long acknowledged
    cdef public long long bad_priority
    cdef public long long dead_lettered
    cdef public long long delivered
    cdef public long long dropped
    cdef public long long expired
    cdef public long long filtered
    cdef public long long outside_size
    cdef public long long received
    cdef public long long replaced
    cdef public long long requeued
    cdef public long long timed_out
    cdef public long long timed_out_again
    cdef public long long too_large
    cdef public long long unacknowledged

    cpdef acknowledge(self, double arrived, Py_ssize_t count)
    cpdef sent_at_qos_0(self, double arrived, Py_ssize_t count)
    @cython.locals(arrived=double, count=Py_ssize_t)
    cpdef note_latencies(self, double now)
