import cython

from gateway.mqtt.connection cimport Connection
from gateway.mqtt.output cimport Output
from gateway.mqtt.received_runs cimport bytes_alone
from gateway.routing.route_cache cimport RouteCache
from gateway.session.session cimport Session
from gateway.session.traffic cimport Traffic

@cython.final
cdef class LoneWay:
    cdef bytes _begins
    cdef long long _changes
    cdef bytes _head
    cdef Connection _publisher
    cdef Connection _receiver
    cdef RouteCache _routes
    cdef Session _session
    cdef Py_ssize_t _size
    cdef Traffic _traffic

    @cython.locals(size=Py_ssize_t, session=Session, receiver=Connection, routes=RouteCache,
                   traffic=Traffic, output=Output, payload_bytes=Py_ssize_t)
    cpdef bint pass_on(self, bytes data, bint at_once) except -1
    @cython.locals(payload_bytes=Py_ssize_t, size=Py_ssize_t)
    cdef bint _learn(self, bytes data) except -1
