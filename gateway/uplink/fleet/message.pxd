import cython

from gateway.storage.outbox.row cimport OutboxRow

@cython.final
cdef class FleetMessage:
    cdef readonly bytes head
    cdef readonly int qos
    cdef readonly Py_ssize_t size
    cdef readonly bytes tail

    @cython.locals(head=bytes)
    cpdef bytes packet(self, packet_identifier, bint dup=*)

@cython.final
cdef class FleetMessages:
    cdef object _aliases
    cdef object _bounds
    cdef bint _identity
    cdef bint _mqtt_5
    cdef bytes _prefix
    cdef bint _retains
    cdef object _targets

    @cython.locals(topic=bytes, fields=bytes, size=bytes, length=Py_ssize_t)
    cpdef FleetMessage of(self, OutboxRow row, now, bint resent, bint aliased=*, bint superseded=*)

@cython.locals(length=Py_ssize_t, head=bytes)
cdef FleetMessage _message(int first_byte, bytes topic, bytes tail)
