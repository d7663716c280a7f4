from gateway.broker.client cimport Client

cpdef watch_keep_alive(broker, Client client, instant)
