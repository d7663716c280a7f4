import cython

from gateway.mqtt.delivery_policy cimport DeliveryPolicy

cdef class Destination:
    cdef public DeliveryPolicy delivery
    cdef public object identifiers
    cdef public int qos
    cdef public bint retain_as_published
    cdef readonly bint shared
    cdef public object subscriber
    cdef public object topic_filters

    cpdef add(self, subscription)
    cpdef identify(self, identifier)
    cpdef hold_as(self, DeliveryPolicy policy)
    cpdef name(self, topic_filter)

cdef class ConflatedDestination(Destination):
    cpdef add(self, subscription)

cpdef Destination destination_of(subscriber)

@cython.final
cdef class Route:
    cdef readonly tuple always
    cdef readonly bint selective
    cdef readonly tuple conditional
    cdef readonly bint crowded
    cdef readonly tuple groups
    cdef readonly tuple indexes
    cdef readonly tuple inline
    cdef readonly tuple match
    cdef readonly tuple sessions
    cdef readonly Py_ssize_t size
    cdef public Py_ssize_t topics

cpdef Py_ssize_t text_size(str text) except -1
