import cython

from gateway.routing.route cimport Route, kind
from gateway.routing.route_cache cimport RouteCache
from gateway.routing.selection cimport Selection
from gateway.routing.silent_levels cimport SilentLevels

cdef class Router:
    cdef object _budget
    cdef object _direct
    cdef object _empty
    cdef object _filtered
    cdef object _indirect
    cdef object _subscribers
    cdef public object maximum_bytes
    cdef public list on_add
    cdef public list on_discard
    cdef readonly RouteCache routes
    cdef readonly SilentLevels silent

    @cython.locals(route=Route, asking=tuple)
    cpdef recipients(self, message)
    @cython.locals(route=Route)
    cpdef tuple plain_recipients(self, str topic, int qos)
    cpdef bint reaches(self, str topic) except -1
    cdef Route _route(self, str topic)
    @cython.locals(route=Route)
    cdef Route _keep_route(self, str topic)
    @cython.locals(number=int, found=tuple)
    cdef tuple _plain(self, Route route, int qos, bint retain)
    @cython.locals(selection=Selection)
    cdef list _ask(self, tuple asking, message)
