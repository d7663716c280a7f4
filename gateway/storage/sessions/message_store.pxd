import cython

from gateway.mqtt.publication cimport Publication

@cython.final
cdef class MessageStore:
    cdef long long _below
    cdef list _gone
    cdef long long _gone_bytes
    cdef long long _last
    cdef dict _new
    cdef list _perhaps_gone

    cpdef Publication hold(self, Publication publication)
    cpdef Py_ssize_t release(self, Publication publication) except -1
    @cython.locals(publication=Publication, plain=list, size="long long")
    cpdef gather(self, add, add_rows, set rows)
