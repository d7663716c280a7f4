import cython

from gateway.storage.outbox.outbox_row cimport OutboxRow

@cython.final
cdef class FleetMessages:
    cdef object _aliases
    cdef object _bounds
    cdef bint _identity
    cdef bint _mqtt_5
    cdef bytes _prefix
    cdef bint _retains
    cdef object _targets

    cpdef str problem(self, OutboxRow row)
    cdef _with(self, bytes topic, bytes alias, OutboxRow row, now, bint resent)
    cdef bytes _topic_of(self, OutboxRow row)
    cdef int _first_byte(self, OutboxRow row) except -1
