import cython

@cython.final
cdef class AcknowledgementRun:
    cdef readonly Py_ssize_t count
    cdef readonly bytes high
    cdef readonly bytes low

    @cython.locals(count=Py_ssize_t, end=Py_ssize_t, number=Py_ssize_t, high=bytes, low=bytes)
    cpdef Py_ssize_t matches(self, Py_ssize_t start, Py_ssize_t first, Py_ssize_t most)

@cython.locals(count=Py_ssize_t, types=bytes, lengths=bytes)
cpdef AcknowledgementRun acknowledgement_run(bytes data, int first_byte)

cpdef bytes numbered(bytes packet, packet_id)

@cython.locals(size=Py_ssize_t, data=object)
cpdef write_run(bytes packet, bytes high, bytes low)
