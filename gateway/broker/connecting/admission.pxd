import cython

from gateway.broker.client cimport Client
from gateway.broker.state cimport State
from gateway.session.session cimport Session

cpdef examine(State state, Client client, packet)

cpdef longest_expiry(settings, Client client, username)

cpdef granted_expiry(settings, Client client, packet)

cpdef greet(Client client, packet)

cdef bint _may_be_assigned(packet) except -1

@cython.locals(session=Session)
cdef _examine_owner(State state, Client client, packet)

cdef _examine_will(State state, Client client, packet)

@cython.locals(session=Session)
cdef _examine_session(State state, Client client, packet)
