import cython

from gateway.broker.client cimport Client
from gateway.session.session cimport Session

@cython.locals(holder=Client)
cpdef take_over(broker, client_id, instant)

@cython.locals(session=Session)
cpdef tuple resume(broker, packet, instant)

@cython.locals(session=Session)
cpdef Session begin(broker, client_id)

cpdef set_expiry(broker, Session session, interval)

@cython.locals(session=Session)
cpdef leave(broker, Client client, instant)

cpdef end(broker, Session session, instant)

cdef _close_journal(Session session)

cdef _stop_waiting(broker, Session session)
