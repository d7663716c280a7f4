import cython

@cython.final
cdef class RowCursor:
    cdef object _end
    cdef object _lane
    cdef object _outbox
    cdef object _position
    cdef bint _reading
    cdef object _rows
    cdef object _stream
    cdef object _uplink

    cpdef bint has_passed(self, identifier) except -1
    cpdef skip_to(self, identifier)
    cpdef ready(self)
    cpdef pop(self)
