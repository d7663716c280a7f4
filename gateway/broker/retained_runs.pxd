import cython

from gateway.broker.client cimport Client
from gateway.broker.topic_limits cimport TopicLimits
from gateway.mqtt.connection cimport Connection
from gateway.mqtt.plain_message cimport Origin, PlainMessage
from gateway.mqtt.plain_publishes cimport PlainPublishes
from gateway.mqtt.received_runs cimport count_plain, next_byte, plain_publishes
from gateway.routing.retained cimport RetainedMessages
from gateway.routing.router cimport Router
from gateway.session.session cimport Session

cdef Py_ssize_t _ANSWERED_AT_ONCE
cdef Py_ssize_t _KEPT_AT_ONCE

@cython.locals(connection=Connection, qos=int, room="long long", most=Py_ssize_t, origin=Origin,
               at_once=bint, message=PlainMessage, packets=PlainPublishes, kept=list, packet_ids=list)
cpdef bint keep(broker, Client client, Session session, packet, instant) except -1

@cython.locals(topic=str, limits=TopicLimits, router=Router, retained=RetainedMessages)
cdef bint _keep(broker, Session session, PlainMessage message) except -1

@cython.locals(high=bytes, low=bytes)
cdef _answer(Connection connection, list packet_ids, long long mark)
