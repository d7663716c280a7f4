cpdef tuple read_properties(
    bytes buffer, Py_ssize_t position, Py_ssize_t end, int packet, int version)

cpdef read_fields(bytes buffer, Py_ssize_t position, Py_ssize_t stop, int packet)
