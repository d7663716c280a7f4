import cython

cdef Py_ssize_t _LENGTH

@cython.locals(types=bytes, lengths=bytes, count=Py_ssize_t)
cpdef acknowledged_by(bytes data, int first_byte)

@cython.locals(size=Py_ssize_t, data=object)
cpdef acknowledgements(bytes packet, identifiers)
