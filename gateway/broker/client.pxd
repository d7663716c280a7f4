import cython

from gateway.broker.lone_numbered_way cimport LoneNumberedWay
from gateway.broker.lone_way cimport LoneWay
from gateway.mqtt.connection cimport Connection
from gateway.mqtt.output cimport Pledge
from gateway.session.session cimport Session

cdef class Client:
    cdef Pledge _pledge
    cdef object _pledged_at
    cdef public object arrival
    cdef public object authentication
    cdef public object authenticator
    cdef public bint closing
    cdef readonly Connection connection
    cdef public object keep_alive
    cdef public tuple last_numbered
    cdef public double last_received
    cdef public tuple last_topic
    cdef public LoneNumberedWay numbered_way
    cdef public object peer
    cdef public bint problem_information
    cdef public bint said_goodbye
    cdef public Session session
    cdef public LoneWay way

    cpdef Pledge pledge(self, instant)
    cpdef send(self, packet, long long mark=*, Pledge pledge=*)
    cpdef close(self)
