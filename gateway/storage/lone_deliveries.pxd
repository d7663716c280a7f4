import cython

from gateway.session.inflight_message cimport InflightAlone
from gateway.storage.gathering cimport Gathering
from gateway.storage.wake_up cimport WakeUp

@cython.final
cdef class LoneDeliveries:
    cdef Gathering _gathering
    cdef dict _sent
    cdef WakeUp _wake_up

    cpdef Py_ssize_t lend(self, InflightAlone message) except -1
    cpdef done(self, InflightAlone message)
    cpdef opened(self, InflightAlone message)
    @cython.locals(sent=dict)
    cdef _forget(self, InflightAlone message)
    @cython.locals(half=double, now=double, due=double, message=InflightAlone)
    cpdef _write_old(self)
