import cython

from gateway.broker.client cimport Client
from gateway.broker.state cimport State
from gateway.session.inflight cimport Inflight
from gateway.session.session cimport Session
from gateway.session.span cimport Span

@cython.locals(index=Py_ssize_t, end=Py_ssize_t, span=Span)
cpdef handle_puback(State _state, Client client, Session session, instant)

@cython.locals(begin=Py_ssize_t, index=Py_ssize_t, span=Span)
cpdef handle_pubrec(State state, Client client, Session session, instant)

@cython.locals(inflight=Inflight, count=Py_ssize_t, index=Py_ssize_t)
cpdef handle_pubcomp(State _state, Client client, Session session, instant)
