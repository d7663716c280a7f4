import cython

from gateway.broker.client cimport Client
from gateway.broker.lone_numbered_way cimport LoneNumberedWay
from gateway.mqtt.acknowledgement_run cimport write_run
from gateway.mqtt.connection cimport Connection
from gateway.mqtt.fields cimport write_string
from gateway.mqtt.output cimport Pledge
from gateway.mqtt.publish_run cimport PublishRun, publish_alone
from gateway.mqtt.received_runs cimport (
    begin_run, begins_numbered, bytes_alone, find_run, frame_size, put_back, take_numbered_run)
from gateway.routing.recipient cimport Recipient
from gateway.session cimport runs
from gateway.session.message_run cimport MessageRun
from gateway.session.session cimport Session
from gateway.session.traffic cimport Traffic

@cython.locals(topic=bytes, size=Py_ssize_t)
cpdef bint pass_on(
    broker, Client client, Session session, packet, tuple recipients, instant) except -1

@cython.locals(session=Session, connection=Connection, size=Py_ssize_t, qos=int, recipients=tuple)
cpdef bint pass_on_again(
    broker, Client client, int first_byte, name, bytes topic, instant) except -1

@cython.locals(session=Session, connection=Connection, rest=Py_ssize_t, packets=PublishRun, qos=int,
               recipients=tuple)
cpdef bint pass_on_alone(
    broker, Client client, bytes data, tuple last, instant, bint at_once) except -1

@cython.locals(receiver=Session, connection=Connection, publisher=Connection)
cdef LoneNumberedWay _way(
    broker, Client client, Session session, name, bytes topic, Recipient to)

@cython.locals(connection=Connection, size=Py_ssize_t, room=Py_ssize_t, largest="long long",
               kept=bint, away=bint, receivers=list, recipient=Recipient, packets=PublishRun,
               run=MessageRun)
cdef bint _pass_on(
    broker, Client client, Session session, int qos, name, bytes topic, Py_ssize_t packet_size,
    tuple recipients, instant, PublishRun alone=*, bint at_once=*) except -1

@cython.locals(receiver=Session, qos=int)
cdef _send(broker, Client client, MessageRun run, list receivers, bint kept, bint away)

@cython.locals(room=Py_ssize_t)
cdef Py_ssize_t _room(
    Client client, Session session, int qos, Py_ssize_t size, Py_ssize_t receivers) except? -1

@cython.locals(connection=Connection, packets=PublishRun, packet=bytes)
cdef _answer(
    broker, Client client, MessageRun run, Py_ssize_t receivers, long long mark, Pledge pledge)

cdef bint _answer_at_once(
    Connection connection, Traffic traffic, MessageRun run, bytes packet) except -1
