import cython

from gateway.server.listening.connection_limits cimport ConnectionLimits
from gateway.server.transport cimport ClientTransport
from gateway.server.turn cimport Turn

@cython.final
cdef class Connections:
    cdef object _durability_class
    cdef ConnectionLimits _limits
    cdef readonly object _newcomers
    cdef object _stack
    cdef object _on_lost
    cdef bint _plain
    cdef object _settings
    cdef object _shared_info
    cdef Turn _turn
    cdef public object access
    cdef public object authenticator
    cdef readonly set clients

    @cython.locals(client=ClientTransport)
    cpdef accept(self)
    cpdef _lost(self, client)
