import cython

from gateway.mqtt.publication cimport Publication
from gateway.routing.budget cimport Budget
from gateway.routing.route cimport Route
from gateway.routing.filters.selection cimport Selection

cdef class Router:
    cdef Budget _budget
    cdef public long long _added
    cdef public bint _is_changed
    cdef public long long _measured
    cdef object _direct
    cdef object _empty
    cdef object _filtered
    cdef object _indirect
    cdef object _sharing
    cdef object _subscribers
    cdef public long long evaluations
    cdef public object maximum_bytes
    cdef public list on_add
    cdef public object on_change
    cdef public list on_discard
    cdef public bint restricts

    cpdef tuple match(self, str topic)
    cpdef bint restricted(self, str topic) except -1
    cdef tuple _barred(self, tuple nodes, str topic)
    @cython.locals(own=list)
    cpdef Route route(self, tuple match)
    @cython.locals(selection=Selection)
    cpdef list select(
        self, Route route, Publication publication, Py_ssize_t number, dict given=*, rights=*,
        Py_ssize_t count=*)
    cpdef bint evaluates(self, Route route) except -1
    @cython.locals(members=Py_ssize_t, run=Py_ssize_t, least=int)
    cpdef Py_ssize_t run(self, Route route, int qos, Py_ssize_t count) except -1
