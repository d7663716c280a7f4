import cython

from gateway.broker.client cimport Client
from gateway.broker.instant cimport Instant
from gateway.broker.state cimport State

cpdef go_on(State state, Client client, pieces, Instant instant)
cpdef bint handle(State state, Client client, Instant instant) except -1
