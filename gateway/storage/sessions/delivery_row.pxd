import cython

from gateway.mqtt.output cimport Barrier
from gateway.mqtt.publication cimport Publication
from gateway.session.span cimport Span

@cython.final
cdef class DeliveryRow:
    cdef public Barrier barrier
    cdef readonly Py_ssize_t base
    cdef public long long batch
    cdef public object gone
    cdef public long long disk_bytes
    cdef readonly Py_ssize_t last
    cdef public Py_ssize_t remaining
    cdef public Py_ssize_t packet_id
    cdef readonly Publication publication
    cdef readonly int qos
    cdef public bint released
    cdef readonly bint retain
    cdef readonly tuple subscription_identifiers
    cdef readonly str topic_filter
    cdef public bint whole
    cdef public Py_ssize_t written

    cpdef remove(self, first, count)  # as objects: `gone` has more bits than a C integer
    cpdef settle(self)
    @cython.locals(publication=Publication, count=Py_ssize_t, part=bint)
    cpdef attach_to(self, Span span)
