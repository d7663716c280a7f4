import cython

from gateway.broker.client cimport Client
from gateway.broker.connecting.admission cimport examine, granted_expiry
from gateway.broker.connecting.keep_alive cimport watch_keep_alive
from gateway.broker.sessions cimport end, resume, set_expiry, take_over
from gateway.broker.wills cimport set_will
from gateway.mqtt.connection cimport Connection
from gateway.session.session cimport Session

cpdef admit(broker, Client client, packet, instant, authentication_data=*)

cpdef refuse(broker, Client client, packet, refusal)

@cython.locals(session=Session, present=bint, assigned=bint)
cdef _accept(broker, Client client, packet, instant, authentication_data)

@cython.locals(session=Session)
cdef _end_of_another_user(broker, Client client, packet, instant)

cdef _allow_aliases(broker, Connection connection, packet)

cdef _keep_alive(Client client, packet)

@cython.locals(imposed=bint, lowered=bint)
cdef _properties(broker, Client client, packet, authentication_data, bint assigned)
