import cython

from gateway.counters cimport Counters
from gateway.routing.budget cimport Budget
from gateway.mqtt.message cimport Message
from gateway.storage.outbox.outbox cimport Outbox
from gateway.storage.outbox.row cimport OutboxRow

@cython.final
cdef class Verdict:
    cdef readonly tuple counted
    cdef readonly list evaluated
    cdef readonly object over_budget
    cdef readonly list results
    cdef readonly object rule
    cdef readonly str stream
    cdef public object uplinks

@cython.final
cdef class RuleSet:
    cdef Budget _budget
    cdef dict _by_filters
    cdef object _commit_within
    cdef Counters _counters
    cdef str _epoch
    cdef dict _last
    cdef object _ledger
    cdef list _numbered
    cdef Outbox _outbox
    cdef object _places
    cdef dict _streams
    cdef dict _uplinks
    cdef readonly list before_numbers
    cdef readonly object brought_up

    @cython.locals(fixed=Verdict, verdict=Verdict, row=OutboxRow, known=list)
    cpdef receive(self, Message message, list topic_filters)
    @cython.locals(fixed=Verdict)
    cdef list _matching(self, Message message, list topic_filters)
    cdef double _wait(self, Message message, rule) except? -1
    @cython.locals(results=list)
    cdef tuple _number(self, Message message, Verdict verdict)
