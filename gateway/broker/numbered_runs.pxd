import cython

from gateway.broker.client cimport Client
from gateway.mqtt.connection cimport Connection
from gateway.mqtt.message_size cimport message_bytes
from gateway.mqtt.output cimport Pledge
from gateway.mqtt.publish_run cimport PublishRun
from gateway.routing.recipient cimport Recipient
from gateway.session cimport runs
from gateway.session.message_run cimport MessageRun
from gateway.session.session cimport Session

@cython.locals(connection=Connection, qos=int, recipient=Recipient, largest="long long",
               lends=bint, size=Py_ssize_t, room=Py_ssize_t, packets=PublishRun, run=MessageRun,
               mark="long long", pledge=Pledge)
cpdef bint pass_on(
    broker, Client client, Session session, packet, list recipients, instant) except -1

@cython.locals(recipient=Recipient, session=Session)
cdef bint _lends(list recipients) except -1

cdef long long _takes(Recipient recipient, int version, within) except -1

@cython.locals(room=Py_ssize_t, recipient=Recipient)
cdef Py_ssize_t _room(
    Client client, Session session, int qos, Py_ssize_t size, list recipients) except? -1

@cython.locals(connection=Connection, packets=PublishRun, packet=bytes)
cdef _answer(Client client, MessageRun run, bint received, long long mark, Pledge pledge)
