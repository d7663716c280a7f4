import cython

from gateway.broker.client cimport Client

cpdef go_on(broker, Client client, pieces, instant)
cpdef bint handle(broker, Client client, instant) except -1
