import cython

from gateway.broker.channels.earlier_run cimport EarlierRun
from gateway.broker.channels.offer cimport Offer
from gateway.broker.channels.returned cimport ReturnedMessages
from gateway.session.queue.delivery_queue cimport DeliveryQueue
from gateway.session.span cimport Span

@cython.final
cdef class Waiting:
    cdef public EarlierRun earlier
    cdef public bint paused
    cdef public object paused_filters
    cdef readonly DeliveryQueue queue
    cdef readonly ReturnedMessages returned

    cpdef bint passes(self) except -1
    @cython.locals(offer=Offer, span=Span)
    cpdef Offer first(self, double now)
    cpdef Span take(self, Py_ssize_t count)
