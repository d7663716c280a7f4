from gateway.broker.connecting.admission cimport greet
from gateway.broker.client cimport Client
from gateway.broker.connecting.connack cimport admit, refuse

cpdef handle_connect(broker, Client client, packet, instant)
