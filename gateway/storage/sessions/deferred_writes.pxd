import cython

from gateway.storage.sessions.delivery_row cimport DeliveryRow
from gateway.storage.engine.pending_batch cimport PendingBatch
from gateway.storage.engine.wake_up cimport WakeUp

@cython.final
cdef class DeferredWrites:
    cdef PendingBatch _pending
    cdef WakeUp _wake_up
    cdef readonly dict rows

    cpdef add(self, DeliveryRow row)
    cpdef discard(self, DeliveryRow row)
    cpdef clear(self)
