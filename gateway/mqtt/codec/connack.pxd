import cython

cdef int _CODES

@cython.locals(before=bytes, behind=bytes)
cpdef bytes write_connack(packet, int version)

@cython.locals(behind=bytes, whole=bytes)
cdef tuple _around_codes(properties)
