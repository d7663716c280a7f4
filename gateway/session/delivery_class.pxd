from gateway.mqtt.delivery_policy cimport DeliveryPolicy

cdef class DeliveryClass:
    cdef object _delays
    cdef readonly long long bytes
    cdef readonly long long flushes
    cdef readonly object name
    cdef readonly long long packets
    cdef readonly DeliveryPolicy policy

    cpdef note_flush(self, Py_ssize_t packets, Py_ssize_t size)
    cpdef note_delays(self, list arrivals, double now)
