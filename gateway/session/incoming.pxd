import cython

from gateway.session.queue_memory cimport QueueMemory

@cython.final
cdef class Incoming:
    cdef dict _identifiers
    cdef QueueMemory _memory
    cdef public Py_ssize_t maximum

    cpdef begin(self)
    cpdef bint add(self, packet_id) except -1
    cpdef bint add_run(self, packet_ids) except -1
    cpdef bint remove_run(self, packet_ids) except -1
    cpdef remove(self, packet_id)
    cpdef clear(self)
