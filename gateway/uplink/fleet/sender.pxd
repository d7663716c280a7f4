import cython

from gateway.storage.outbox.outbox cimport Outbox
from gateway.storage.outbox.row cimport OutboxRow
from gateway.uplink.fleet.client cimport FleetClient
from gateway.uplink.fleet.inflight cimport Inflight
from gateway.uplink.fleet.publisher cimport Picked, Publisher
from gateway.uplink.lanes cimport Lanes

@cython.final
cdef class Sender:
    cdef bint _all_in_batches
    cdef object _at_turn_end
    cdef object _batch
    cdef object _batch_limits
    cdef FleetClient _client
    cdef object _clock
    cdef object _context
    cdef Inflight _inflight
    cdef Lanes _lanes
    cdef bint _may_follow
    cdef object _metering
    cdef object _next
    cdef Outbox _outbox
    cdef object _pacing
    cdef bint _picking
    cdef Publisher _publisher
    cdef Py_ssize_t _receive_maximum
    cdef set _repeated
    cdef object _session
    cdef object _suspects
    cdef object _uplink
    cdef object _wake
    cdef Py_ssize_t _window
    cdef readonly bint careful
    cdef readonly bint idle
    cdef readonly bint is_free

    cpdef bint accepts(self, OutboxRow row) except -1
    cpdef send(self, OutboxRow row)
    cpdef flush(self, committed, now)
    cpdef answered(self)
    cpdef send_fresh(self)
    @cython.locals(lanes=Lanes, inflight=Inflight, row=OutboxRow)
    cdef _send_from_memory(self)
    @cython.locals(inflight=Inflight)
    cdef bint _may_send_live(self) except -1
    @cython.locals(inflight=Inflight)
    cdef bint _may_send(self) except -1
    cdef bint _may_send_backlog(self) except -1
    @cython.locals(lanes=Lanes, row=OutboxRow)
    cdef _in_memory(self, now)
    cdef _paced(self, OutboxRow row)
    cdef bint _backlog_is_due(self, now) except -1
    cdef bint _was_repeated(self, OutboxRow row) except -1
    cdef _send(self, Picked picked, now, wall)
    cdef _line(self, Picked picked, wall)
