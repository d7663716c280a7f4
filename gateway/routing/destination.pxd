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
