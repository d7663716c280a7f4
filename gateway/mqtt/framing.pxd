import cython

from gateway.mqtt.codec.packet_codec cimport check_first_byte, check_first_packet, reserved
from gateway.mqtt.publication cimport PacketBatch

cdef int _LAST_SHIFT
cdef int _QOS

@cython.final
cdef class Framer:
    cdef bytearray _chunks
    cdef public Py_ssize_t maximum_packet_size
    cdef Py_ssize_t _missing
    cdef readonly bytes buffer
    cdef readonly int first_byte
    cdef readonly Py_ssize_t body
    cdef readonly Py_ssize_t end
    cdef readonly Py_ssize_t position
    cdef readonly Py_ssize_t start

    cpdef feed(self, bytes data)
    @cython.locals(buffer=bytes, position=Py_ssize_t, left=Py_ssize_t, length=Py_ssize_t,
                   body=Py_ssize_t, end=Py_ssize_t, size=Py_ssize_t, first_byte=int)
    cpdef int next_frame(self, int version=*) except -1
    cpdef clear(self)
    @cython.locals(buffer=bytes, like=bytes, start=Py_ssize_t, end=Py_ssize_t, following=bytes,
                   size=Py_ssize_t, last="long long", skip=Py_ssize_t, count=Py_ssize_t)
    cpdef bint extend(
        self, PacketBatch batch, long long most, long long most_bytes, bytes properties=*,
        same_route=*) except -1
    @cython.locals(buffer=bytes, start=Py_ssize_t, end=Py_ssize_t, body=Py_ssize_t, name=bytes,
                   first_byte=int, largest=Py_ssize_t, between=Py_ssize_t, size=Py_ssize_t,
                   payload=Py_ssize_t, stop=Py_ssize_t, differ=bint, count=Py_ssize_t,
                   longest=Py_ssize_t, limit=Py_ssize_t)
    cdef bint _extend_uneven(
        self, PacketBatch batch, long long most, long long most_bytes, bytes properties,
        same_route) except -1
    cpdef bytes pop_rest(self)
    cpdef bytes last_bytes(self, Py_ssize_t size)
    cpdef go_on(self, Py_ssize_t size)
    @cython.locals(first_byte=int)
    cdef _wait(self, Py_ssize_t missing, int version)
    cdef _join(self, bytearray chunks)

cdef _check(int first_byte, int version)

@cython.locals(length=Py_ssize_t, body=Py_ssize_t)
cdef tuple _body(bytes buffer, Py_ssize_t position)

@cython.locals(value=Py_ssize_t, shift=int, byte=cython.uint)
cdef tuple _long_remaining_length(bytes buffer, Py_ssize_t position)
