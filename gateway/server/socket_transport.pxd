import cython

from gateway.server.socket_selector cimport SocketSelector

cdef int _READ
cdef int _NOT_READ
cdef int _NOT_WRITE

@cython.final
cdef class SocketTransport:
    cdef object _address
    cdef bint _closing
    cdef bint _eof
    cdef int _events
    cdef Py_ssize_t _high
    cdef object _loop
    cdef bint _paused
    cdef object _protocol
    cdef SocketSelector _selector
    cdef object _socket
    cdef readonly list _unsent
    cdef Py_ssize_t _unsent_bytes
    cdef bint _waits
    cdef int _wants
    cdef public Py_ssize_t max_size

    @cython.locals(selector=SocketSelector)
    cpdef ready(self, int events)
    @cython.locals(data=bytes)
    cdef _receive(self, Py_ssize_t size)
    cdef _receive_little(self)
    cpdef bint is_closing(self)
    @cython.locals(size=Py_ssize_t, sent=Py_ssize_t)
    cpdef write(self, data)
    cdef _buffer(self, rest)
    cpdef close(self)
    @cython.locals(sent=Py_ssize_t)
    cdef _send_unsent(self, list unsent)
    cdef _all_sent(self)
    cdef _shut_down(self)
    cdef _fail(self, error)
    cdef _watch(self, int events)
