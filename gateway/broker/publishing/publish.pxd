import cython

from gateway.broker.client cimport Client
from gateway.broker.instant cimport Instant
from gateway.broker.publishing.forward cimport forward
from gateway.broker.publishing.topic_admissions cimport TopicAdmission, TopicAdmissions
from gateway.broker.state cimport State
from gateway.mqtt.connection cimport Connection
from gateway.mqtt.output cimport Barrier, Output, Pending
from gateway.mqtt.publication cimport Publication
from gateway.routing.budget cimport Budget
from gateway.routing.route cimport Route
from gateway.session.inflight cimport Inflight
from gateway.session.session cimport Session
from gateway.session.span cimport Span
from gateway.session.traffic cimport Traffic

cdef Py_ssize_t _MAXIMUM_BATCH
cdef Py_ssize_t _MAXIMUM_NUMBERED
cdef Py_ssize_t _MAXIMUM_FILTERED
cdef int _MAXIMUM_SKIPPED
cdef Py_ssize_t _PROPERTY_BYTES
cdef int _FAILURE

@cython.locals(connection=Connection, publication=Publication, admissions=TopicAdmissions,
               admission=TopicAdmission, qos=int, count=Py_ssize_t, traffic=Traffic,
               first=Py_ssize_t, budget=Budget)
cpdef handle_publish(State state, Client client, Session session, Instant instant)

@cython.locals(admissions=TopicAdmissions, connection=Connection, lookups=Py_ssize_t, misses=Py_ssize_t, joining=bint,
               name=bytes)
cdef _try_to_extend(
    State state, Client client, Session session, Publication publication, TopicAdmission admission)

@cython.locals(connection=Connection, traffic=Traffic, qos=int, most="long long",
               bytes_free="long long", fresh=Py_ssize_t, route=Route, admissions=object)
cdef _extend(
    State state, Client client, Session session, Publication publication, TopicAdmission admission)

@cython.locals(qos=int, count=Py_ssize_t, barrier=Barrier, commit="long long",
               connection=Connection, aside=Output, following=Output, unknown=bint)
cdef Py_ssize_t _publish(
    State state, Client client, Session session, Publication publication, Py_ssize_t first,
    TopicAdmission admission, Instant instant) except -1

@cython.locals(barrier=Barrier, before="long long", connection=Connection, deferred="long long",
               pending=Pending)
cdef tuple _forward(
    State state, Client client, Session session, Publication publication, Py_ssize_t first,
    TopicAdmission admission, Instant instant)

cdef _refusal(State state, Publication publication, TopicAdmission admission, code)

@cython.locals(connection=Connection)
cdef _answer(
    State state, Client client, Session session, Publication publication, Py_ssize_t first,
    Py_ssize_t count, code, long long commit, Barrier barrier)

@cython.locals(index=Py_ssize_t, end=Py_ssize_t, count=Py_ssize_t)
cpdef handle_puback(State _state, Client client, Session session, Instant instant)

@cython.locals(begin=Py_ssize_t, index=Py_ssize_t, span=Span)
cpdef handle_pubrec(State state, Client client, Session session, Instant instant)

@cython.locals(inflight=Inflight, count=Py_ssize_t, index=Py_ssize_t)
cpdef handle_pubcomp(State _state, Client client, Session session, Instant instant)
