import cython

from gateway.mqtt.connection cimport Connection
from gateway.mqtt.output cimport Output, Pledge
from gateway.mqtt.publish_form cimport behind_topic
from gateway.mqtt.received_runs cimport bytes_alone
from gateway.routing.route_cache cimport RouteCache
from gateway.session.inflight_message cimport InflightAlone
from gateway.session.session cimport Session
from gateway.session.traffic cimport Traffic

cdef int _FIRST_BYTE
cdef bytes _ANSWER
cdef bytes _PLAIN

@cython.final
cdef class LoneNumberedWay:
    cdef bytes _begins
    cdef long long _changes
    cdef object _origin
    cdef bytes _plain
    cdef Connection _publisher
    cdef Connection _receiver
    cdef RouteCache _routes
    cdef Session _session
    cdef int _own
    cdef int _size
    cdef int _start
    cdef object _store
    cdef bytes _topic

    @cython.locals(size=Py_ssize_t, session=Session, publisher=Connection, receiver=Connection,
                   output=Output, answers=Output, place=Py_ssize_t, start=Py_ssize_t, high=int,
                   low=int, payload_bytes=Py_ssize_t, answer=bytes, traffic=Traffic,
                   message=InflightAlone, own=Py_ssize_t, packet_id=Py_ssize_t)
    cpdef bint pass_on(self, bytes data, bint at_once, double now, wall) except -1
    @cython.locals(publisher=Connection, pledge=Pledge)
    cdef _lend(self, InflightAlone message, bytes answer)
    @cython.locals(traffic=Traffic)
    cdef bint _may_wait(self) except -1
    cdef bint _may_come(self, bytes data) except -1
    @cython.locals(publisher=Connection, size=Py_ssize_t, rest=Py_ssize_t, behind=Py_ssize_t,
                   length=bytes)
    cdef bint _learn(self, bytes data) except -1
