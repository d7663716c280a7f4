import cython

from gateway.mqtt.codec.fields cimport (
    read_binary,
    read_byte,
    read_string,
    read_two_byte_integer,
)
from gateway.mqtt.codec.property_codec cimport read_properties

cdef Py_ssize_t _BEGINNING

cpdef tuple read_protocol_version(bytes buffer, Py_ssize_t position, Py_ssize_t end)

@cython.locals(version=int, flags=int)
cpdef read_connect(bytes buffer, Py_ssize_t position, Py_ssize_t end, int _version)

cdef _check_flags(int flags, int version)

cdef tuple _read_will(bytes buffer, Py_ssize_t position, Py_ssize_t end, int flags, int version)

cdef bint _left_out(Py_ssize_t position, Py_ssize_t end, int version) except -1
