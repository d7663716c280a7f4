import cython

from gateway.mqtt.connection cimport Connection
from gateway.session.delivery_queue cimport DeliveryQueue
from gateway.session.inflight cimport Inflight
from gateway.session.session cimport Session

@cython.locals(inflight=Inflight, packet_id=Py_ssize_t)
cpdef send_again(Session session, Connection connection, double now)

@cython.locals(queue=DeliveryQueue, inflight=Inflight)
cpdef send_waiting(Session session, Connection connection, double now)

@cython.locals(packet_id=Py_ssize_t)
cpdef send_counted(Session session, Connection connection, delivery, templates, double now)

cpdef bint send_one(
    Session session, Connection connection, delivery, templates, Py_ssize_t packet_id, double now,
    long long mark=*, bint dup=*) except -1

@cython.locals(version=int)
cdef _wire(Connection connection, delivery, templates, packet_id, double now, bint dup)
