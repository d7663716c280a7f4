from gateway.mqtt.codec.publish cimport read_publish

cdef int _CONNECT
cdef int _PUBLISH
cdef int _AUTH
cdef int _TYPE

cpdef check_first_packet(int first_byte, bytes head=*)

cpdef check_first_byte(int first_byte, int version)

cpdef reserved(int first_byte)

cpdef decode_head(bytes buffer, int first_byte, Py_ssize_t start, Py_ssize_t end, int version)

cpdef bytes encode(packet, int version)
