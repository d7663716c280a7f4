import cython

from gateway.broker.client cimport Client
from gateway.mqtt.acknowledgement_run cimport AcknowledgementRun
from gateway.mqtt.connection cimport Connection
from gateway.mqtt.received_runs cimport (
    acknowledgements_alone, find_acknowledgements, next_byte, take_acknowledgements)
from gateway.session cimport runs
from gateway.session.session cimport Session
from gateway.session.traffic cimport Traffic

cdef int _PUBACK
cdef int _PUBREC
cdef int _PUBREL
cdef int _PUBCOMP
cdef bytes _FINISH

@cython.locals(session=Session, connection=Connection)
cpdef bint finish_alone(
    Client client, bytes data, Traffic traffic, bint at_once=*) except -1

@cython.locals(session=Session, connection=Connection, run=AcknowledgementRun, count=Py_ssize_t)
cpdef Py_ssize_t take_alone(Client client, bytes data, instant) except -1

@cython.locals(session=Session, connection=Connection, first_byte=int, run=AcknowledgementRun,
               count=Py_ssize_t)
cpdef bint take_run(Client client, instant) except -1

cdef bint _expects(Session session, int first_byte) except -1

cdef Py_ssize_t _take(
    Client client, Session session, AcknowledgementRun run, int first_byte, double now) except -1

@cython.locals(count=Py_ssize_t)
cdef Py_ssize_t _release(Client client, Session session, AcknowledgementRun run) except -1

cdef Py_ssize_t _complete(Client client, Session session, AcknowledgementRun run) except -1
