import cython

from gateway.mqtt.aliases.outbound_aliases cimport OutboundAliases
from gateway.mqtt.codec.fields cimport write_variable_byte_integer
from gateway.storage.outbox.row cimport OutboxRow
from gateway.uplink.envelope cimport has_more, write_user_properties

cdef int _DUP
cdef int _PACKET_IDENTIFIER
cdef int _QOS_SHIFT
cdef int _RETAIN
cdef tuple _SINGLE_BYTES

@cython.final
cdef class FleetMessage:
    cdef readonly bytes head
    cdef readonly int qos
    cdef readonly Py_ssize_t size
    cdef readonly bytes tail

    @cython.locals(head=bytes, high=int, low=int)
    cpdef bytes packet(self, int packet_identifier, bint dup=*)

@cython.final
cdef class FleetMessages:
    cdef OutboundAliases _aliases
    cdef bint _identity
    cdef bint _mqtt_5
    cdef bint _retains
    cdef object _targets

    @cython.locals(topic=bytes, fields=bytes, tail=bytes, first_byte=int, retains=bint,
                   alias=int, known=bint, high=int, low=int)
    cpdef FleetMessage of(self, OutboxRow row, now, bint resent, bint aliased=*, bint superseded=*)
