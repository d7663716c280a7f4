import cython

from gateway.session.queue.memory cimport QueueMemory

@cython.final
cdef class Incoming:
    cdef Py_ssize_t _first
    cdef dict _identifiers
    cdef QueueMemory _memory
    cdef Py_ssize_t _stop
    cdef public Py_ssize_t maximum

    cpdef begin(self)
    cpdef bint add(self, Py_ssize_t packet_id) except -1
    @cython.locals(count=Py_ssize_t)
    cpdef bint add_all(self, packet_ids) except -1
    cdef bint _follow(self, packet_ids) except -1
    @cython.locals(count=Py_ssize_t, identifiers=dict)
    cpdef bint remove_all(self, packet_ids) except -1
    cdef _open(self)
    cpdef remove(self, Py_ssize_t packet_id)
    cpdef clear(self)
