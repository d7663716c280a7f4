import cython

from gateway.broker.client cimport Client
from gateway.session.session cimport Session
from gateway.session.span cimport Span

@cython.locals(session=Session, place=Py_ssize_t, end=Py_ssize_t, span=Span)
cpdef handle_puback(_broker, Client client, instant)

@cython.locals(session=Session, begin=Py_ssize_t, place=Py_ssize_t, span=Span)
cpdef handle_pubrec(_broker, Client client, instant)

@cython.locals(session=Session)
cpdef handle_pubcomp(_broker, Client client, instant)
