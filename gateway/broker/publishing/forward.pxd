import cython

from gateway.broker.instant cimport Instant
from gateway.broker.publishing.topic_admissions cimport TopicAdmission
from gateway.broker.publishing.topic_memory cimport Topic, TopicMemory
from gateway.broker.state cimport State
from gateway.mqtt.publication cimport PacketBatch, Publication
from gateway.routing.budget cimport Budget
from gateway.routing.route cimport Destination
from gateway.routing.route cimport Route
from gateway.session.session cimport Session
from gateway.session.traffic cimport Traffic

cdef Py_ssize_t _MAXIMUM_HELD
cdef long long _RECEIVER_BYTES

@cython.locals(
    count=Py_ssize_t, route=Route, selected=list, budget=Budget, unfinished=bint, topic=Topic,
    packets=PacketBatch)
cpdef tuple forward(
    State state, Publication publication, Py_ssize_t first, TopicAdmission admission,
    Instant instant, bint reserved)

@cython.locals(is_retained=bint, destination=Destination, session=Session, qos=int)
cdef Py_ssize_t _capacity(
    State state, Publication publication, Py_ssize_t first, Py_ssize_t count, Route route) except -1

cdef Py_ssize_t _retained_capacity(
    State state, Publication publication, Py_ssize_t first, Py_ssize_t most) except -1

@cython.locals(
    packets=PacketBatch, joined=list, chosen=list, topics=list, aligned=bint, last=Py_ssize_t, place=Py_ssize_t,
    one=TopicAdmission, offset=Py_ssize_t, end=Py_ssize_t, topic=Topic)
cdef _note(
    State state, TopicMemory memory, Publication publication, Py_ssize_t first, Py_ssize_t count,
    TopicAdmission admission)

cdef _remember(State state, Publication publication, Py_ssize_t first, Py_ssize_t count)

@cython.locals(number=Py_ssize_t, one=Publication)
cdef _retain(State state, Publication publication, Py_ssize_t first, Py_ssize_t count)

@cython.locals(
    number=Py_ssize_t, end=Py_ssize_t, run=Py_ssize_t, found=list, given=dict, selected=list,
    route=Route, budget=Budget)
cdef tuple _offer(
    State state, Publication publication, Py_ssize_t first, Py_ssize_t count, TopicAdmission admission,
    bint reserved)

@cython.locals(is_retained=bint, destination=Destination, session=Session, qos=int, more=Py_ssize_t)
cdef bint _has_capacity(
    State state, Publication publication, Py_ssize_t first, list selected, dict given) except -1

@cython.locals(
    destination=Destination, session=Session, qos=int, retain=bint, run=Py_ssize_t, runs=list,
    receivers=Py_ssize_t)
cdef _deliver(
    Traffic traffic, Publication publication, Py_ssize_t first, Py_ssize_t count, Route route, list selected,
    double now, bint reserved)

@cython.locals(session=Session)
cpdef deliver(
    Destination destination, Publication publication, Py_ssize_t first, Py_ssize_t count,
    double now, bint reserved)
