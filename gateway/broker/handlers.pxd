import cython

from gateway.broker.client cimport Client
from gateway.broker.state cimport State

cpdef go_on(State state, Client client, pieces, instant)
cpdef bint handle(State state, Client client, instant) except -1
