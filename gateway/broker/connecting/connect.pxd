from gateway.broker.connecting.admission cimport greet
from gateway.broker.client cimport Client
from gateway.broker.connecting.connack cimport admit, refuse
from gateway.broker.state cimport State

cpdef handle_connect(State state, Client client, packet, instant)
