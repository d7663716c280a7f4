import cython

from gateway.broker.client cimport Client
from gateway.mqtt.connection cimport Connection
from gateway.session.session cimport Session

cpdef admit(broker, Client client, packet, instant, authentication_data=*)

cpdef refuse(broker, Client client, packet, refusal)

@cython.locals(session=Session, present=bint, assigned=bint)
cdef _accept(broker, Client client, packet, instant, authentication_data)

cdef _allow_aliases(broker, Connection connection, packet)

cdef _keep_alive(Client client, packet)
