import cython

from gateway.session.session cimport Session
from gateway.session.span cimport Span

cpdef bint must_keep(Session session, int qos) except -1

@cython.locals(count=Py_ssize_t, head=Span, number=Py_ssize_t)
cpdef enqueue(Session session, Span span, bint promised)

cdef _enqueue(Session session, Span span)
