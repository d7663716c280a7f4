import cython

from gateway.mqtt.packet_run cimport PacketRun

cdef int _LAST_SHIFT

@cython.final
cdef class Framer:
    cdef bytes _buffer
    cdef bytearray _gathered
    cdef Py_ssize_t _maximum_packet_size
    cdef Py_ssize_t _missing
    cdef Py_ssize_t _position
    cdef Py_ssize_t _start

    cpdef feed(self, bytes data)
    @cython.locals(buffer=bytes, position=Py_ssize_t, length=Py_ssize_t, start=Py_ssize_t,
                   end=Py_ssize_t)
    cpdef tuple next_frame(self, int version=*)
    @cython.locals(buffer=bytes, like=bytes, start=Py_ssize_t, end=Py_ssize_t, size=Py_ssize_t,
                   last="long long", body=Py_ssize_t, count=Py_ssize_t)
    cpdef PacketRun run(self, bytes alike, Py_ssize_t least, long long largest, long long most)
    @cython.locals(buffer=bytes, start=Py_ssize_t, end=Py_ssize_t, first_byte=int,
                   body=Py_ssize_t, stop=Py_ssize_t)
    cdef _lengthen(
        self, PacketRun run, bytes alike, Py_ssize_t least, long long largest, long long most)
    @cython.locals(buffer=bytes, position=Py_ssize_t, body=Py_ssize_t, end=Py_ssize_t,
                   size=Py_ssize_t)
    cpdef Py_ssize_t like(self, int first_byte, bytes alike, Py_ssize_t least=*)
    @cython.locals(buffer=bytes, position=Py_ssize_t, body=Py_ssize_t, end=Py_ssize_t)
    cpdef tuple take_like(self, int first_byte)
    @cython.locals(body=Py_ssize_t, end=Py_ssize_t, size=Py_ssize_t, length=int)
    cpdef Py_ssize_t alone(self, bytes data, int first_byte, bytes alike)
    cpdef pass_over(self, Py_ssize_t size)
    cpdef bytes look_ahead(self, Py_ssize_t size)
    cpdef skip(self, Py_ssize_t size)
    cpdef bint idle(self)
    cdef _wait(self, Py_ssize_t missing)
    cdef _join(self, bytearray gathered)

@cython.locals(length=Py_ssize_t, body=Py_ssize_t)
cdef tuple _body(bytes buffer, Py_ssize_t position)

@cython.locals(value=Py_ssize_t, shift=int, byte=cython.uint)
cdef tuple _long_remaining_length(bytes buffer, Py_ssize_t position)
