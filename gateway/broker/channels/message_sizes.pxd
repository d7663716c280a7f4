import cython

from gateway.mqtt.publication cimport PacketBatch, Publication

@cython.final
cdef class MessageSizes:
    cdef long long _largest
    cdef long long _smallest

    @cython.locals(packets=PacketBatch)
    cpdef Py_ssize_t fitting(
        self, Publication publication, Py_ssize_t first, Py_ssize_t most) except? -1
