import cython

from gateway.broker.client cimport Client

cpdef bint handle(broker, Client client, int first_byte, instant) except -1
