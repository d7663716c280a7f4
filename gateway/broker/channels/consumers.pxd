import cython

from gateway.mqtt.publication cimport Publication
from gateway.session.session cimport Session

cdef class Consumers:
    cdef object _choice
    cdef object _choose
    cdef object _group
    cdef bint _guarded
    cdef bint _picky
    cdef object _randrange
    cdef object _router

    @cython.locals(connected=Py_ssize_t, runs=Py_ssize_t, session=Session)
    cpdef Py_ssize_t share(self, Py_ssize_t count) except -1
    cpdef choose(self, Publication publication, Py_ssize_t number, Session avoid)

@cython.locals(session=Session)
cdef _first(members, Publication publication, Py_ssize_t _number)

cpdef Session session_of(member)

cdef bint _has_room(member, Publication publication) except -1
