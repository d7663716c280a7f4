import cython

from gateway.broker.client cimport Client
from gateway.broker.deadlines cimport Deadlines
from gateway.broker.state cimport State
from gateway.session.session cimport Session

cpdef set_will(State state, Session session, will)

@cython.locals(holder=Client)
cpdef take_over(State state, client_id, instant)

@cython.locals(session=Session)
cpdef tuple resume(State state, packet, instant)

@cython.locals(session=Session)
cpdef Session begin(State state, client_id)

cpdef set_expiry(State state, Session session, interval)

@cython.locals(session=Session)
cpdef disconnect(State state, Client client, instant)

cpdef end(State state, Session session, instant)

cdef _close_journal(Session session)

cdef _stop_waiting(Deadlines deadlines, Session session)
