import cython

from gateway.mqtt.acknowledgement_batch cimport acknowledged_by, acknowledgements
from gateway.mqtt.codec.packet_codec cimport decode_head
from gateway.mqtt.codec.packet_codec cimport encode
from gateway.mqtt.framing cimport Framer
from gateway.mqtt.output cimport Barrier, Output
from gateway.mqtt.publication cimport PacketBatch, Publication
from gateway.mqtt.codec.publish cimport read_publish_head
from gateway.mqtt.publish_encoder cimport write_packets
from gateway.mqtt.codec.publish cimport PropertyCache, PublishProperties, property_block

cdef Py_ssize_t _LARGEST
cdef Py_ssize_t _SIZE
cdef int _DUP
cdef int _LONGEST_LENGTH

@cython.final
cdef class Connection:
    cdef object _alias_figures
    cdef object _aliases
    cdef readonly bint next_has_same_topic
    cdef readonly bint next_is_publish
    cdef readonly Py_ssize_t answers
    cdef public Barrier barrier
    cdef readonly Framer framer
    cdef public long long maximum_packet_size
    cdef readonly Py_ssize_t maximum_unsent
    cdef public object on_output
    cdef public object outbound_aliases
    cdef public Output output
    cdef public long long packets_received
    cdef public long long packets_sent
    cdef readonly PropertyCache property_cache
    cdef public Py_ssize_t publishes
    # side by side, which saves 4 bytes each: what a client may say in two bytes, and small numbers
    cdef int _alias_maximum
    cdef public int receive_maximum
    cdef public bint touched
    cdef public int version
    cdef public bint bridge

    cpdef next_packet(self)
    @cython.locals(framer=Framer, buffer=bytes, first_byte=int, start=Py_ssize_t, end=Py_ssize_t)
    cpdef packet(self)
    @cython.locals(framer=Framer, buffer=bytes, view="const char*", first_byte=int, body=Py_ssize_t, end=Py_ssize_t, mqtt5=bint,
                   name_end=Py_ssize_t, fields=Py_ssize_t, payload=Py_ssize_t,
                   properties=PublishProperties, name=bytes, packet=bytes, identifier=Py_ssize_t,
                   head=Py_ssize_t, packets=PacketBatch, topic=Py_ssize_t, longer=bint,
                   publication=Publication)
    cpdef Publication publication(self)
    @cython.locals(properties=PublishProperties, block=bytes)
    cdef _make_canonical(self, Publication publication)
    @cython.locals(buffer=bytes, start=Py_ssize_t, last=Py_ssize_t, end=Py_ssize_t)
    cpdef bytes next_topic_name(self)
    @cython.locals(packets=PacketBatch, properties=bytes, place=Py_ssize_t)
    cpdef extend(self, Publication publication, long long most, long long most_bytes, same_route=*)
    @cython.locals(packets=PacketBatch)
    cpdef shorten(self, Publication publication, Py_ssize_t count)
    @cython.locals(framer=Framer, buffer=bytes, body=Py_ssize_t, end=Py_ssize_t)
    cpdef acknowledged(self)
    cdef bytes _resolve_name(self, bytes name, alias)
    cdef bytes _resolve_alias(self, bytes topic, alias)
    cpdef check_receive_maximum(self)
    @cython.locals(copy=bytearray, count=Py_ssize_t, packet_id=int)
    cpdef answer(
        self, bytes packet, identifiers, long long commit=*, Barrier barrier=*, bint last=*)
    cpdef Output set_output_aside(self)
    cpdef Output resume_output(self, Output aside)
    cpdef bint send(self, packet, long long commit=*) except -1
    cpdef send_encoded(
        self, data, Py_ssize_t count, long long commit=*, Barrier barrier=*,
        Py_ssize_t acknowledgements=*)
    cpdef touch(self)
    @cython.locals(barrier=Barrier)
    cpdef data_to_send(self, long long committed, double now=*)
    cpdef discard(self)
    cpdef close(self)
