import cython

from gateway.mqtt.codec.fields cimport (
    missing_bytes, read_packet_identifier, read_variable_byte_integer, to_text)

cdef Py_ssize_t _MAXIMUM_CACHED
cdef Py_ssize_t _LARGEST_CACHED

@cython.final
cdef class PublishProperties:
    cdef object _fields
    cdef readonly object alias
    cdef readonly bytes data
    cdef readonly object expiry

@cython.final
cdef class PropertyCache:
    cdef dict _known
    cdef readonly Py_ssize_t misses

    @cython.locals(known=PublishProperties, properties=PublishProperties)
    cpdef PublishProperties read(self, bytes block)

cpdef PublishProperties of_fields(fields)

@cython.locals(data=bytes)
cpdef bytes property_block(
    PublishProperties properties, expiry, tuple subscription_identifiers, Py_ssize_t alias,
    bytes last=*)

@cython.locals(length=Py_ssize_t)
cpdef tuple block_bounds(bytes buffer, Py_ssize_t position, Py_ssize_t end)

@cython.locals(position=Py_ssize_t, topic_end=Py_ssize_t, qos=int, packet_id=Py_ssize_t,
               topic=str)
cpdef read_publish(
    bytes buffer, int first_byte, Py_ssize_t start, Py_ssize_t end, int version)

cdef int _QOS

@cython.locals(position=Py_ssize_t, name_end=Py_ssize_t)
cpdef tuple read_publish_head(
    bytes buffer, int first_byte, Py_ssize_t start, Py_ssize_t end, bint mqtt5)
