import cython

from gateway.mqtt.acknowledgement_run cimport numbered, write_run
from gateway.mqtt.decode cimport check_first_packet, decode
from gateway.mqtt.encode cimport encode
from gateway.mqtt.framing cimport Framer
from gateway.mqtt.output cimport Output, Pledge

@cython.final
cdef class Connection:
    cdef object _alias_figures
    cdef object _aliases
    cdef readonly Py_ssize_t answers
    cdef readonly Framer framer
    cdef public long long maximum_packet_size
    cdef public object on_output
    cdef public object outbound_aliases
    cdef readonly Output output
    cdef public long long packets_received
    cdef public long long packets_sent
    cdef public Py_ssize_t publishes
    # side by side, which saves 4 bytes each: what a client may say in two bytes, and small numbers
    cdef int _alias_maximum
    cdef public int receive_maximum
    cdef bint awaited
    cdef public bint touched
    cdef public int version

    cpdef receive(self, bytes data)
    @cython.locals(frame=tuple, buffer=bytes, first_byte=int, start=Py_ssize_t, end=Py_ssize_t)
    cpdef next_packet(self)
    cdef _resolve_alias(self, packet)
    cpdef count_publish(self)
    cpdef acknowledge(self, packet, long long mark=*, Pledge pledge=*)
    cpdef acknowledge_like(self, bytes packet, packet_id, long long mark=*, Pledge pledge=*)
    cpdef promise_like(self, bytes packet, long long mark, Pledge pledge)
    cpdef await_disk(self, Pledge pledge)
    @cython.locals(output=Output)
    cpdef Py_ssize_t leave_at_once(self) except -1
    cpdef acknowledge_run(self, bytes packet, run, long long mark=*, Pledge pledge=*)
    cpdef answer_run(
        self, bytes packet, bytes high, bytes low, long long mark=*, Pledge pledge=*)
    cpdef bint send(self, packet, long long mark=*, Pledge pledge=*) except -1
    cpdef send_encoded(self, data, long long mark=*, Pledge pledge=*)
    cpdef send_run(self, data, Py_ssize_t count)
    cpdef touch(self)
    cpdef data_to_send(self, long long committed)
    cpdef close(self)
