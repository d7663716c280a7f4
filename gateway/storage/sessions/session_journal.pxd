import cython

from gateway.mqtt.output cimport Barrier
from gateway.mqtt.publication cimport Publication
from gateway.session.span cimport Span
from gateway.storage.sessions.delivery_row cimport DeliveryRow
from gateway.storage.engine.pending_batch cimport PendingBatch
from gateway.storage.sessions.session_changes cimport Changes
from gateway.storage.sessions.session_record cimport SessionRecord

cdef class SessionJournal(SessionRecord):
    cdef long long _last_sequence
    cdef public dict attempts
    cdef public Py_ssize_t deliveries
    cdef public bint open
    cdef public object queue

    @cython.locals(barrier=Barrier, row=DeliveryRow, pending=PendingBatch)
    cpdef enqueue(self, Span span, bint deferred)
    @cython.locals(publication=Publication, row=DeliveryRow)
    cdef DeliveryRow _row_of(self, Span span, long long base)
    cpdef done(self, Span span, Py_ssize_t first, Py_ssize_t count)
    @cython.locals(changes=Changes, last="long long", elided=Py_ssize_t)
    cdef _note_done(self, DeliveryRow row)
