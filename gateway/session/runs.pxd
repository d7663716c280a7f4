import cython

from gateway.mqtt.acknowledgement_run cimport AcknowledgementRun
from gateway.mqtt.connection cimport Connection
from gateway.mqtt.publish_run cimport PublishRun
from gateway.session.inflight cimport Inflight
from gateway.session.inflight_message cimport InflightAlone
from gateway.session.inflight_run cimport InflightRun
from gateway.session.message_run cimport MessageRun
from gateway.session.session cimport Session

@cython.locals(connection=Connection)
cpdef long long largest(Session session, int version) except -1

cpdef long long largest_numbered(Session session, int version, int qos, within) except -1

cpdef Py_ssize_t room(Session session, Py_ssize_t size) except? -1

@cython.locals(connection=Connection, sent=InflightRun, packets=PublishRun)
cpdef send_numbered(Session session, MessageRun run, int qos)

@cython.locals(message=InflightAlone, publisher=Connection)
cpdef bint finish_alone(Session session, Py_ssize_t packet_id, bint at_once) except -1

@cython.locals(end=Py_ssize_t)
cdef Py_ssize_t _finish_alone(
    Session session, AcknowledgementRun acknowledgements, Py_ssize_t start) except -1

@cython.locals(inflight=Inflight, count=Py_ssize_t, sent=InflightRun)
cdef Py_ssize_t _finish_run(
    Session session, int qos, AcknowledgementRun acknowledgements, Py_ssize_t start) except -1

@cython.locals(start=Py_ssize_t, single=bint, count=Py_ssize_t)
cpdef Py_ssize_t finish(
    Session session, int qos, AcknowledgementRun acknowledgements, double now) except -1

@cython.locals(start=Py_ssize_t, count=Py_ssize_t, sent=InflightRun)
cpdef Py_ssize_t release(Session session, AcknowledgementRun acknowledgements) except -1
