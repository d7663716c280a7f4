import cython

from gateway.broker.client cimport Client
from gateway.broker.handlers cimport go_on, handle
from gateway.broker.instant cimport Instant
from gateway.broker.state cimport State
from gateway.mqtt.connection cimport Connection
from gateway.mqtt.framing cimport Framer
from gateway.routing.router cimport Router
from gateway.session.session cimport Session
from gateway.session.traffic cimport Traffic

cdef dict _STREAMS
cdef int _AT_ONCE
cdef int _PUBLISH
cdef long long _COST_OF_EVALUATIONS
cdef long long _EVALUATIONS_PER_COST
cdef Py_ssize_t _SIGN_OF_LIFE

cdef class Broker(State):
    cdef object _packets_received
    cdef object _packets_sent

    @cython.locals(connection=Connection, framer=Framer, traffic=Traffic, router=Router,
                   first_byte=int, session=Session, now=double, most="long long", cost="long long",
                   left=int)
    cpdef bint receive(self, Client client, bytes data, Instant instant) except -1
    cdef bint _go_on(self, Client client, pieces, Instant instant) except -1
    cdef _fail(self, Client client, error)
    cdef _refuse(self, Client client, error)
