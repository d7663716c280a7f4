from gateway.mqtt.connection cimport Connection
from gateway.session.session cimport Session

cdef class Client:
    cdef public object info
    cdef public object authentication
    cdef public object authenticator
    cdef public bint aborted
    cdef public bint closing
    cdef readonly Connection connection
    cdef public Py_ssize_t held
    cdef public Py_ssize_t held_below
    cdef public Py_ssize_t held_connect
    cdef public object end_reason
    cdef public object keep_alive
    cdef public double last_received
    cdef public bint logged
    cdef public Py_ssize_t occupied
    cdef readonly double opened
    cdef public object peer
    cdef public object pieces
    cdef public bint problem_information
    cdef public bint sent_disconnect
    cdef public Session session
    cdef public short skipping
    cdef public short skips

    cpdef send(self, packet, long long commit=*)
    cpdef close(self)
