import cython

from gateway.broker.broker cimport Broker
from gateway.broker.client cimport Client
from gateway.broker.instant cimport Instant
from gateway.server.socket_selector cimport SocketSelector
from gateway.session.traffic cimport Traffic
from gateway.storage.engine.wake_up cimport CommitDue, WakeUp

cdef double _STEP
cdef long long _TURN_BYTES
cdef double _WRITING

@cython.final
cdef class LongestTurn:
    cdef object _before
    cdef double _until
    cdef str _what
    cdef public double seconds

    cpdef note(self, double seconds, Client client, int first_byte)

@cython.final
cdef class Turn:
    cdef double _armed_for
    cdef object _clock
    cdef CommitDue _due
    cdef object _expiry
    cdef bint _goes_on
    cdef dict _held
    cdef Instant _instant
    cdef list _lines
    cdef object _promises
    cdef long long _round
    cdef readonly object _timer
    cdef object _waiting
    cdef WakeUp _wake_up
    cdef object _waking
    cdef double _write_until
    cdef object _writer
    cdef readonly dict active
    cdef readonly Broker broker
    cdef public Client client
    cdef readonly object flushes
    cdef readonly dict late
    cdef readonly LongestTurn longest
    cdef readonly object loop
    cdef readonly object monotonic
    cdef readonly bint overrun
    cdef readonly bint scheduled
    cdef readonly SocketSelector sockets
    cdef readonly object wall_ms
    cdef readonly object wall_ns

    @cython.locals(sockets=SocketSelector, now=double, nanoseconds="long long", wall="long long",
                   ahead=double, instant=Instant)
    cpdef Instant now(self)
    cpdef touch(self, connection)
    @cython.locals(batch="long long")
    cpdef write_early(self, connection)
    cpdef later(self, go_on)
    cpdef _serve_waiting(self)
    cpdef when_on_disk(self, callback)
    @cython.locals(broker=Broker, traffic=Traffic, full_at="long long", instant=Instant,
                   elapsed=double)
    cpdef end(self)
    cdef _note_longest(self, elapsed)
    cpdef schedule(self)
    @cython.locals(batch="long long", committed="long long", first=bint, held=dict, in_time=bint,
                   polls="long long", waiting=dict, written=Py_ssize_t)
    cdef _flush(self, Instant now)
    cdef bint _has_time(self, double second) except -1
    cdef _postpone(self, list rest)
    cpdef _go_on(self)
    cdef _run_committed(self)
    cdef _arm(self)
    @cython.locals(wake_up=WakeUp)
    cpdef _await_wake_up(self)
