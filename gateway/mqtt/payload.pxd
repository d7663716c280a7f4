import cython

cdef bytes _DIGITS_ALONE
cdef bytes _LONG_NUMBER
cdef Py_ssize_t _JSON_BYTES
cdef Py_ssize_t _JSON_LEVELS
cdef Py_ssize_t _TWO_BRACKETS_A_LEVEL

cpdef parse_json(bytes payload)
cdef bint _is_too_deep(bytes payload) except -1
