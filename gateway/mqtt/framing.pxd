import cython

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
    cpdef tuple next_frame(self)
    @cython.locals(buffer=bytes, alike=bytes, start=Py_ssize_t, end=Py_ssize_t, size=Py_ssize_t,
                   last=Py_ssize_t)
    cpdef tuple run(self, Py_ssize_t rest)
    cdef _wait(self, Py_ssize_t missing)
    cdef _join(self, bytearray gathered)

@cython.locals(value=Py_ssize_t, shift=int, byte=cython.uint)
cdef tuple _long_remaining_length(bytes buffer, Py_ssize_t position)
