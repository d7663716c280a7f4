import cython

from gateway.mqtt.output cimport Barrier
from gateway.mqtt.publication cimport Publication
from gateway.session.span cimport Span
from gateway.storage.sessions.delivery_row cimport DeliveryRow
from gateway.storage.engine.pending_batch cimport PendingBatch

@cython.final
cdef class Changes:
    cdef public dict attempts
    cdef public dict begun
    cdef public dict deferred
    cdef public list gone
    cdef public Py_ssize_t gone_messages
    cdef public dict incoming
    cdef public dict enqueued
    cdef public dict progress
    cdef public dict subscriptions

cdef class SessionJournal:
    cdef Changes _changes
    cdef object _store
    cdef object _commit_within
    cdef readonly object client_id
    cdef public object expiry_interval
    cdef public object home
    cdef public object disconnected_at
    cdef public object number
    cdef public object username
    cdef long long _last_sequence
    cdef public dict attempts
    cdef public Py_ssize_t deliveries
    cdef public bint open
    cdef public object queue

    cdef Changes _begun(self)
    @cython.locals(barrier=Barrier, row=DeliveryRow, pending=PendingBatch)
    cpdef enqueue(self, Span span, bint deferred)
    @cython.locals(publication=Publication, row=DeliveryRow)
    cdef DeliveryRow _row_of(self, Span span, long long base)
    cpdef done(self, Span span, Py_ssize_t first, Py_ssize_t count)
    @cython.locals(changes=Changes, last="long long", elided=Py_ssize_t)
    cdef _note_done(self, DeliveryRow row)
