import cython

cdef bytes _HIGH
cdef bytes _LOW

@cython.final
cdef class PacketBatch:
    cdef list _offsets
    cdef list _starts
    cdef readonly Py_ssize_t body
    cdef readonly Py_ssize_t count
    cdef readonly bytes data
    cdef readonly Py_ssize_t identifier
    cdef readonly Py_ssize_t largest
    cdef readonly Py_ssize_t payload
    cdef readonly Py_ssize_t payloads
    cdef readonly Py_ssize_t size

    cpdef extend(self, bytes data, list starts, list offsets, Py_ssize_t largest)
    cpdef take_even(self, bytes data)
    @cython.locals(data=bytes)
    cpdef shorten(self, Py_ssize_t count)
    cpdef Py_ssize_t start(self, Py_ssize_t number) except -1
    @cython.locals(end=Py_ssize_t, heads=Py_ssize_t)
    cpdef Py_ssize_t payload_bytes(self, Py_ssize_t first, Py_ssize_t count) except -1
    @cython.locals(offset=Py_ssize_t, size=Py_ssize_t)
    cpdef bytes one(self, Py_ssize_t number)
    @cython.locals(data=bytes, start=Py_ssize_t)
    cpdef bytes topic_name(self, Py_ssize_t number)
    @cython.locals(offset=Py_ssize_t, data=bytes, back=Py_ssize_t)
    cpdef identifiers(self)
    cpdef bytes slice(self, Py_ssize_t first, Py_ssize_t count)
    @cython.locals(data=object, size=Py_ssize_t, offset=Py_ssize_t, back=Py_ssize_t)
    cpdef bytearray numbered(self, Py_ssize_t first, Py_ssize_t count, Py_ssize_t packet_id)
    cpdef PacketBatch part(self, Py_ssize_t first, Py_ssize_t count)

@cython.locals(body=Py_ssize_t, payload=Py_ssize_t)
cpdef PacketBatch uneven_batch(bytes data, list starts, list offsets, Py_ssize_t back)

cdef Py_ssize_t body_start(bytes data, Py_ssize_t start) except -1

@cython.locals(first=Py_ssize_t, end=Py_ssize_t)
cpdef packet_ids(bytes high, bytes low)
