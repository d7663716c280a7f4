import cython

from gateway.server.gate cimport Gate
from gateway.server.transport cimport ClientTransport
from gateway.server.turn cimport Turn

@cython.final
cdef class Reception:
    cdef object _durability_class
    cdef Gate _gate
    cdef object _layers
    cdef object _on_lost
    cdef bint _plain
    cdef object _settings
    cdef object _shared_arrival
    cdef Turn _turn
    cdef public object access
    cdef public object authenticator
    cdef readonly set clients

    @cython.locals(client=ClientTransport)
    cpdef accept(self)
    cpdef _lost(self, client)
