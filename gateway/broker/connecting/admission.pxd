import cython

from gateway.broker.client cimport Client
from gateway.session.session cimport Session

cpdef examine(broker, Client client, packet)

cpdef longest_expiry(broker, Client client, username)

cpdef granted_expiry(broker, Client client, packet)

cpdef greet(Client client, packet)

cdef bint _may_be_assigned(packet) except -1

@cython.locals(session=Session)
cdef _examine_owner(broker, Client client, packet)

cdef _examine_will(broker, Client client, packet)

@cython.locals(session=Session)
cdef _examine_session(broker, Client client, packet)
