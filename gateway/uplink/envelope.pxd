import cython

from gateway.storage.outbox.row cimport OutboxRow

@cython.locals(seq=bytes, time=bytes, fields=bytes)
cpdef bytes write_user_properties(OutboxRow row, bint identity, bint resent)

cpdef bint has_more(OutboxRow row) except -1
