import cython

from gateway.broker.client cimport Client
from gateway.broker cimport numbered_runs, retained_runs
from gateway.mqtt.connection cimport Connection
from gateway.mqtt.packet_run cimport PacketRun
from gateway.mqtt.received_runs cimport begin_run, begins_with, bytes_alone, frame_size, plain_head, take_run
from gateway.routing.recipient cimport Recipient
from gateway.session cimport runs
from gateway.session.session cimport Session
from gateway.session.traffic cimport Traffic

@cython.locals(session=Session, recipients=tuple)
cpdef bint pass_on(broker, Client client, packet, instant) except -1

@cython.locals(connection=Connection, largest="long long", head=bytes)
cdef bint _pass_on(broker, Client client, packet, tuple recipients) except -1

@cython.locals(head=bytes, first_byte=int, name=bytes)
cpdef bint pass_on_again(broker, Client client, instant) except -1

@cython.locals(connection=Connection, largest="long long", size=Py_ssize_t, recipients=tuple)
cdef bint _pass_on_again(broker, Client client, topic, bytes head) except -1

@cython.locals(connection=Connection, payload_bytes=Py_ssize_t, head=bytes, receivers=list,
               receiver=Session, traffic=Traffic)
cpdef bint pass_on_alone(broker, Client client, bytes data, tuple last) except -1

@cython.locals(version=int, recipients=tuple, receivers=list, recipient=Recipient,
               receiver=Connection)
cdef list _receivers_alone(broker, Client client, topic, bytes head, Py_ssize_t size)

@cython.locals(run=PacketRun, count=Py_ssize_t, properties=bint, payload_bytes=Py_ssize_t,
               recipient=Recipient, receiver=Session)
cdef _send(broker, Connection connection, bytes head, tuple recipients, long long largest)

@cython.locals(largest="long long", recipient=Recipient)
cdef long long _largest(tuple recipients, int version) except -1
