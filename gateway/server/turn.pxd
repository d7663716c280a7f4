import cython

from gateway.broker.broker cimport Broker
from gateway.server.socket_selector cimport SocketSelector

@cython.final
cdef class Turn:
    cdef double _armed_for
    cdef object _clock
    cdef dict _held
    cdef object _instant
    cdef object _promises
    cdef bint _scheduled
    cdef SocketSelector _sockets
    cdef readonly object _timer
    cdef dict _touched
    cdef object _writer
    cdef readonly Broker broker
    cdef readonly object loop

    cpdef now(self)
    cpdef touch(self, connection)
    cpdef when_on_disk(self, callback)
    cpdef end(self)
    cdef _schedule(self)
    @cython.locals(committed="long long", batch="long long", held=dict, touched=dict)
    cdef _flush(self, now)
    cdef _keep_promises(self)
    cdef _arm(self)
