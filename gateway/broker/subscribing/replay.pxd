import cython

from gateway.routing.retained.log cimport Cursor
from gateway.session.session cimport Session

@cython.final
cdef class Replay:
    cdef readonly Cursor cursor
    cdef public object kept
    cdef public bint noted
    cdef public bint scans
    cdef readonly Session session
    cdef public object subscription
