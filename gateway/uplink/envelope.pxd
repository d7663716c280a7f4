import cython

from gateway.storage.outbox.outbox_row cimport OutboxRow

@cython.locals(seq=bytes, time=bytes, fields=bytes)
cpdef bytes write_user_properties(OutboxRow row, bint identity, bint resent)

cdef bytes _length(bytes data)

cpdef bint has_more(OutboxRow row) except -1
