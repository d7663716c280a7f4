import cython

from gateway.broker.client cimport Client

cpdef bint handle(broker, Client client, instant) except -1
