from gateway.broker.client cimport Client

cpdef handle(broker, Client client, packet, instant)
