import cython

from gateway.mqtt.framing cimport PacketRun

@cython.final
cdef class PublishRun:
    cdef object _places
    cdef readonly Py_ssize_t count
    cdef readonly bytes high
    cdef readonly bytes low
    cdef readonly PacketRun packets
    cdef readonly Py_ssize_t payload
    cdef readonly Py_ssize_t payload_bytes

    @cython.locals(data=object, high=bytes, low=bytes, place=Py_ssize_t, upper=cython.uchar,
                   lower=cython.uchar)
    cpdef numbered(self, Py_ssize_t first)
    @cython.locals(packets=PacketRun, end=Py_ssize_t)
    cpdef bytes one(self, Py_ssize_t number)
