import cython

from gateway.mqtt.publication cimport Publication
from gateway.mqtt.publish_encoder cimport publication_of_one
from gateway.mqtt.codec.publish cimport PublishProperties, of_fields
from gateway.session.span cimport Span
from gateway.storage.sessions.delivery_row cimport DeliveryRow

@cython.final
cdef class SpanReader:
    cdef double _monotonic
    cdef dict _names
    cdef dict _properties
    cdef dict _shared
    cdef dict _topics
    cdef long long _wall
    cdef readonly Py_ssize_t messages
    cdef readonly Py_ssize_t rows
    cdef readonly long long size

    @cython.locals(publication=Publication, count=Py_ssize_t, span=Span, row=DeliveryRow)
    cpdef list spans(self, values)
    @cython.locals(publication=Publication, properties=PublishProperties)
    cdef Publication _publication(self, values)
    cdef tuple _topic(self, bytes data)
    cdef _name(self, bytes data)
    cdef PublishProperties _read_properties(self, packet_ids)

cpdef check_packet_id(Py_ssize_t packet_id, Py_ssize_t lowest=*)
