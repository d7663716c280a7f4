import cython

from gateway.server.socket_selector cimport SocketSelector

@cython.final
cdef class Acceptor:
    cdef int _at_once
    cdef tuple _kind
    cdef object _listening
    cdef object _loop
    cdef object _make_protocol
    cdef SocketSelector _sockets

    cpdef ready(self, int _events)
    cdef _begin(self, sock, address)
    cdef _pause(self, error)
    cdef _watch(self, int events)
