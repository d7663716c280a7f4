import cython

from gateway.counters cimport Counters
from gateway.storage.outbox.row cimport OutboxRow
from gateway.uplink.fleet.client cimport FleetClient
from gateway.uplink.fleet.inflight cimport Inflight
from gateway.uplink.fleet.message cimport FleetMessage, FleetMessages
from gateway.uplink.sent cimport Sent

@cython.final
cdef class Picked:
    cdef readonly bint paced
    cdef readonly bint resent
    cdef readonly OutboxRow row

@cython.final
cdef class Publisher:
    cdef object _aliases
    cdef str _batch_topic
    cdef FleetClient _client
    cdef object _context
    cdef Counters _counters
    cdef Inflight _inflight
    cdef object _limits
    cdef FleetMessages _messages
    cdef object _pacing
    cdef object _settings

    @cython.locals(message=FleetMessage, superseded=bint)
    cpdef row(self, OutboxRow row, now, bint resent=*, bint is_paced=*)
    cdef _count(self, rows)
    cdef bint _too_large(self, size) except -1
