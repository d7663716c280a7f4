import cython

from gateway.mqtt.codec.fields cimport write_variable_byte_integer
from gateway.mqtt.publication cimport PacketBatch, Publication, uneven_batch
from gateway.mqtt.codec.publish cimport PublishProperties, of_fields, property_block

cdef tuple _SINGLE_BYTES
cdef int _QOS

@cython.locals(properties=PublishProperties)
cpdef PacketBatch encode(
    Publication publication, int first_byte, bint mqtt5, tuple subscription_identifiers, double now)

cpdef remaining_expiry(Publication publication, double now)

@cython.locals(packets=PacketBatch)
cpdef PacketBatch encode_with_alias(
    Publication publication, Py_ssize_t number, int first_byte, tuple subscription_identifiers,
    double now, aliases, long long maximum_packet_size)

@cython.locals(key=int, forms=dict, found=PacketBatch, properties=PublishProperties, block=bytes,
               written=PacketBatch)
cpdef PacketBatch form(Publication publication, int first_byte, bint mqtt5)

@cython.locals(back=bytes, middle=bytes, payload=Py_ssize_t, data=bytes, offset=Py_ssize_t,
               first=bytes, content=bytes, head=bytes, start=Py_ssize_t, number=Py_ssize_t,
               end=Py_ssize_t, size=Py_ssize_t)
cpdef PacketBatch write_packets(
    PacketBatch packets, int first_byte, bytes topic_name, bytes properties)

@cython.locals(mqtt5=bint, block=bytes, first_byte=int, packets=PacketBatch,
               publication=Publication)
cpdef Publication publication_of_one(
    str topic, bytes topic_name, bytes payload, int qos, bint retain, PublishProperties properties)

@cython.locals(middle=bytes, size=Py_ssize_t, head=bytes, data=bytes)
cpdef PacketBatch write_publish(
    int first_byte, bytes topic_name, bytes payload, bytes properties)
