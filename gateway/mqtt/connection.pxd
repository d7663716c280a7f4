import cython

from gateway.mqtt.acknowledgement_run cimport (
    AcknowledgementRun,
    acknowledgement_run,
    numbered,
    write_run,
)
from gateway.mqtt.decode cimport check_first_packet, decode
from gateway.mqtt.fields cimport write_string
from gateway.mqtt.framing cimport Framer
from gateway.mqtt.packet_run cimport PacketRun
from gateway.mqtt.output cimport Output, Pledge
from gateway.mqtt.plain_publishes cimport PlainPublishes
from gateway.mqtt.publish_form cimport behind_topic
from gateway.mqtt.publish_run cimport PublishRun, publish_run

@cython.final
cdef class Connection:
    cdef object _alias_figures
    cdef Py_ssize_t _alias_maximum
    cdef object _aliases
    cdef Framer _framer
    cdef Py_ssize_t _publishes
    cdef readonly Py_ssize_t answers
    cdef public long long maximum_packet_size
    cdef public object on_output
    cdef public object outbound_aliases
    cdef readonly Output output
    cdef public long long packets_received
    cdef public long long packets_sent
    cdef public Py_ssize_t receive_maximum
    cdef public bint touched
    cdef public int version

    cpdef receive(self, bytes data)
    @cython.locals(frame=tuple, buffer=bytes, first_byte=int, start=Py_ssize_t, end=Py_ssize_t)
    cpdef next_packet(self)
    cpdef bytes head(self, topic)
    cpdef Py_ssize_t begins_with(self, bytes head) except -1
    cpdef Py_ssize_t bytes_alone(self, bytes data, bytes head, int first_byte=*) except? -1
    @cython.locals(least=Py_ssize_t)
    cpdef Py_ssize_t begins_numbered(self, int first_byte, bytes topic) except -1
    cpdef begin_run(self, Py_ssize_t size)
    cpdef put_back(self)
    @cython.locals(run=PacketRun)
    cpdef PacketRun take_run(self, bytes head, long long largest)
    cpdef PlainPublishes plain_publishes(self, int qos)
    cpdef count_plain(self, PlainPublishes packets, Py_ssize_t to_acknowledge)
    @cython.locals(properties=bint, least=Py_ssize_t)
    cpdef PublishRun find_run(self, bytes topic, long long largest, long long most)
    cpdef take_numbered_run(self, PublishRun run)
    cdef _pass_over(self, bytes data, Py_ssize_t count)
    cpdef AcknowledgementRun find_acknowledgements(self, int first_byte)
    cpdef take_acknowledgements(self, Py_ssize_t count)
    @cython.locals(run=AcknowledgementRun)
    cpdef AcknowledgementRun acknowledgements_alone(self, bytes data)
    cdef _resolve_alias(self, packet)
    cpdef count_publish(self)
    cpdef acknowledge(self, packet, long long mark=*, Pledge pledge=*)
    cpdef acknowledge_like(self, bytes packet, packet_id, long long mark=*, Pledge pledge=*)
    cpdef acknowledge_run(self, bytes packet, run, long long mark=*, Pledge pledge=*)
    cpdef answer_run(
        self, bytes packet, bytes high, bytes low, long long mark=*, Pledge pledge=*)
    cpdef bint send(self, packet, long long mark=*, Pledge pledge=*) except -1
    cpdef send_encoded(self, data, long long mark=*, Pledge pledge=*)
    cpdef send_run(self, data, Py_ssize_t count)
    cpdef touch(self)
    cpdef data_to_send(self, long long committed)
    cpdef close(self)
