import cython

from gateway.mqtt.publication cimport Publication

cdef Py_ssize_t _SPAN_OVERHEAD

@cython.final
cdef class Span:
    cdef Py_ssize_t _size
    cdef public object channel
    cdef public Py_ssize_t count
    cdef public Py_ssize_t first
    cdef public long long disk_bytes
    cdef public Py_ssize_t packet_id
    cdef public Publication publication
    cdef readonly int qos
    cdef readonly bint retain
    cdef public object row
    cdef readonly tuple subscription_identifiers
    cdef readonly str topic_filter

    cpdef fill(
        self, Publication publication, Py_ssize_t first, Py_ssize_t count, int qos, bint retain,
        tuple subscription_identifiers, str topic_filter)
    cpdef become(self, Span other)
    cpdef Span part(self, Py_ssize_t first, Py_ssize_t count)
