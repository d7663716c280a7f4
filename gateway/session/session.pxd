import cython

from gateway.counters cimport Counters
from gateway.mqtt.connection cimport Connection
from gateway.session.delivery_queue cimport DeliveryQueue
from gateway.session.incoming cimport Incoming
from gateway.session.inflight cimport Inflight
from gateway.session.traffic cimport Traffic

cdef class Session:
    cdef Incoming _incoming
    cdef object _will
    cdef readonly object client_id
    cdef public Connection connection
    cdef public Counters counters
    cdef public object durability_class
    cdef public object expiry_interval
    cdef public Inflight inflight
    cdef public object journal
    cdef public object limits
    cdef public object on_room
    cdef public DeliveryQueue queue
    cdef public Traffic traffic
    cdef public object username

    cpdef drop(self, Py_ssize_t packet_id, delivery)
    cpdef bint ready(self, int qos) except -1
    @cython.locals(connection=Connection)
    cpdef Connection clear_connection(self)
    @cython.locals(connection=Connection, traffic=Traffic)
    cpdef send_run(self, data, Py_ssize_t count, Py_ssize_t payload_bytes, bint at_once=*)
    cpdef bint has_room(self, int qos) except -1
    cdef _lend(self, delivery)
    cpdef pump(self, double now)
    cdef _enqueue(self, delivery, bint promised)
