import cython

@cython.final
cdef class PacketRun:
    cdef list _bodies
    cdef list _starts
    cdef readonly Py_ssize_t body
    cdef readonly Py_ssize_t count
    cdef readonly bytes data
    cdef readonly Py_ssize_t size

    cpdef differ(self, bytes data, list starts, list bodies)
    @cython.locals(heads=Py_ssize_t)
    cpdef Py_ssize_t bytes_behind(self, Py_ssize_t place)
    @cython.locals(start=Py_ssize_t, data=bytes)
    cpdef PacketRun part(self, Py_ssize_t first, Py_ssize_t end)

@cython.locals(run=PacketRun)
cpdef PacketRun uneven_run(bytes data, list starts, list bodies)
