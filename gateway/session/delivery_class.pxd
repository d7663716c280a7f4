import cython

from gateway.mqtt.delivery_policy cimport DeliveryPolicy

@cython.final
cdef class DeliveryClass:
    cdef object _delays
    cdef public long long bytes
    cdef public long long flushes
    cdef readonly object name
    cdef public long long packets
    cdef public DeliveryPolicy policy

    cpdef note_delays(self, list arrivals, double now)
