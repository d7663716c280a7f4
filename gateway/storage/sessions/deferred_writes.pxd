import cython

from gateway.storage.sessions.delivery_row cimport DeliveryRow
from gateway.storage.engine.gathering cimport Gathering
from gateway.storage.engine.wake_up cimport WakeUp

@cython.final
cdef class DeferredWrites:
    cdef Gathering _gathering
    cdef dict _rows
    cdef WakeUp _wake_up

    cpdef add(self, DeliveryRow row)
    cpdef discard(self, DeliveryRow row)
    cpdef clear(self)
