import cython

from gateway.broker.client cimport Client
from gateway.broker.connecting.admission cimport examine, granted_expiry
from gateway.broker.sessions cimport end, resume, set_expiry, set_will, take_over
from gateway.broker.state cimport State
from gateway.mqtt.connection cimport Connection
from gateway.session.session cimport Session

cpdef admit(State state, Client client, packet, instant, authentication_data=*)

cpdef refuse(State state, Client client, packet, refusal)

@cython.locals(session=Session, present=bint, assigned=bint)
cdef _accept(State state, Client client, packet, instant, authentication_data)

@cython.locals(session=Session)
cdef _end_of_another_user(State state, Client client, packet, instant)

cdef _allow_aliases(State state, Connection connection, packet)

cdef _keep_alive(Client client, packet)

@cython.locals(imposed=bint, lowered=bint)
cdef _properties(State state, Client client, packet, authentication_data, bint assigned)
