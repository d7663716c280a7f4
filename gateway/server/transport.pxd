import cython

from gateway.broker.client cimport Client
from gateway.broker.instant cimport Instant
from gateway.mqtt.connection cimport Connection
from gateway.mqtt.output cimport Buffered, Output
from gateway.server.turn cimport Turn
from gateway.session.delivery_class cimport DeliveryClass
from gateway.session.session cimport Session
from gateway.session.traffic cimport Traffic

cpdef peer_name(transport)

cpdef bint is_local(transport) except -1

cpdef address_name(address)

cdef long long _NOTED
cdef Py_ssize_t _NOTED_OUTPUT

@cython.final
cdef class ClientTransport:
    cdef object _abort
    cdef object _info
    cdef object _authenticator
    cdef Client _client
    cdef Py_ssize_t _below
    cdef bint _finished
    cdef public bint active
    cdef bint _held
    cdef bint _held_back
    cdef object _on_lost
    cdef readonly bint _paused
    cdef bint _rest
    cdef readonly object _transport
    cdef Turn _turn
    cdef bytes _unhandled

    @cython.locals(client=Client, turn=Turn, connection=Connection, unknown=bint, unread=bint,
                   turns="long long", instant=Instant)
    cpdef data_received(self, bytes data)
    @cython.locals(turn=Turn, traffic=Traffic, late=bint, more=bint)
    cdef _receive_rest(self, Client client, Instant began, long long turns)
    cdef _wait_for_others(self)
    cdef _end(self)
    @cython.locals(turn=Turn)
    cdef _check_time(self)
    @cython.locals(
        client=Client, connection=Connection, session=Session, buffered=Buffered, monotonic=double,
        delivery=DeliveryClass, size=Py_ssize_t)
    cpdef flush(self, long long committed, Instant now)
    @cython.locals(due=double)
    cdef _flush_later(self, Output output, double now)
    @cython.locals(connection=Connection)
    cdef _see_to(self, Client client, transport)
    cpdef note_below(self, Py_ssize_t size)
    cdef _note_held(self, Client client)
    cdef _expire(self, transport)
    cdef _finish(self, transport)
