import cython

from gateway.broker.channels.deliveries cimport Deliveries
from gateway.mqtt.publication cimport Publication
from gateway.routing.router cimport Router
from gateway.session.session cimport Session

@cython.final
cdef class Consumers:
    cdef object _choose
    cdef Deliveries _deliveries
    cdef bint _durable
    cdef readonly object group
    cdef bint _guarded
    cdef bint _in_turn
    cdef object _moves
    cdef object _randrange
    cdef Router _router
    cdef bint _sticky
    cdef Py_ssize_t _turn
    cdef readonly list every_level
    cdef public list members

    cpdef bint accept_any(self) except -1
    cpdef bint ask(self) except -1
    @cython.locals(connected=Py_ssize_t, runs=Py_ssize_t, session=Session)
    cpdef Py_ssize_t share(self, Py_ssize_t count) except -1
    cpdef choose(
        self, Publication publication, Py_ssize_t number, Session avoid, Py_ssize_t above)
    @cython.locals(members=list, turn=Py_ssize_t, qos=int)
    cdef _next_ready(self, Publication publication)
    cdef bint _suits(self, member, int qos) except -1

cpdef Session session_of(member)

cdef bint _has_capacity(member, Publication publication) except -1
