import cython

cdef tuple _SINGLE_BYTES
cdef int _LAST_SHIFT

cpdef missing_bytes(str name, Py_ssize_t position, Py_ssize_t needed, Py_ssize_t end)

cpdef bytes write_variable_byte_integer(Py_ssize_t value)

cpdef bytes write_binary(bytes data)

cpdef bytes write_string(text)

cpdef bytes write_two_byte_integer(value)

cpdef tuple read_byte(bytes buffer, Py_ssize_t position, Py_ssize_t end, str name)

cpdef tuple read_two_byte_integer(bytes buffer, Py_ssize_t position, Py_ssize_t end, str name)

cpdef tuple read_four_byte_integer(bytes buffer, Py_ssize_t position, Py_ssize_t end, str name)

@cython.locals(start=Py_ssize_t, value=cython.uint, shift=int, byte=cython.uint)
cpdef tuple read_variable_byte_integer(
    bytes buffer, Py_ssize_t position, Py_ssize_t end, str name)

@cython.locals(start=Py_ssize_t, stop=Py_ssize_t)
cpdef tuple read_binary(bytes buffer, Py_ssize_t position, Py_ssize_t end, str name)

@cython.locals(start=Py_ssize_t, stop=Py_ssize_t)
cpdef tuple read_string(bytes buffer, Py_ssize_t position, Py_ssize_t end, str name)

@cython.locals(packet_id=Py_ssize_t)
cpdef tuple read_packet_identifier(bytes buffer, Py_ssize_t position, Py_ssize_t end)

@cython.locals(text=str)
cpdef str to_text(bytes data, str name)
