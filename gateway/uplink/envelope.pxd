import cython

from gateway.mqtt.message cimport Message
from gateway.storage.outbox.row cimport OutboxRow

cdef tuple _SINGLE_BYTES

@cython.locals(message=Message, seq=bytes, time=bytes, fields=bytes)
cpdef bytes write_user_properties(OutboxRow row, bint identity, bint resent)

@cython.locals(message=Message)
cpdef bint has_more(OutboxRow row) except -1
