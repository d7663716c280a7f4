import cython

from gateway.storage.sessions.delivery_row cimport DeliveryRow
from gateway.storage.engine.pending_batch cimport PendingBatch
from gateway.storage.engine.wake_up cimport WakeUp

@cython.final
cdef class DeferredWrites:
    cdef PendingBatch _pending
    cdef dict _rows
    cdef WakeUp _wake_up

    cpdef add(self, DeliveryRow row)
    cpdef discard(self, DeliveryRow row)
    cpdef clear(self)
