import cython

from gateway.mqtt.message cimport Message
from gateway.where.figures cimport Figures

cdef long long _ORDINARY
cdef long long _QUICK
cdef long long _EVALUATION
cdef long long _FIXED
cdef long long _SAMPLED
cdef int _NOT_PASSED
cdef int _PASSED
cdef int _SKIPPED
cdef int _CUT_SHORT

cdef class Budget:
    cdef public double now
    cdef public long long null
    cdef readonly object over
    cdef public long long passed
    cdef public int pieces
    cdef public long long slow
    cdef public bint unfinished
    cdef long long _decided
    cdef long long _evaluated
    cdef long long _stop
    cdef dict _clients
    cdef long long _turn_cost
    cdef set _exhausted
    cdef object _promoted
    cdef double _promoted_at
    cdef double _second
    cdef object _slowest
    cdef readonly object timer
    cdef double _turn
    cdef object _unreported
    cdef object _warned

    @cython.locals(work="long long", now=double)
    cpdef begin(self, long long payload_bytes=*)
    cpdef bint passes(self, where, Message message, client_id) except -1
    @cython.locals(most="long long", used="long long", remaining="long long", count="long long", figures=Figures)
    cpdef int evaluate(self, where, Message message, client_id, bint quick=*) except -1
    cdef _charge(self, client_id, long long work)
    cdef int _skip(self, where, Message message, client_id) except -1
    cdef int _exceeded(self, where, Message message, client_id, long long work, bint quick) except -1
    @cython.locals(figures=Figures)
    cdef _note(self, where, Message message, client_id, bound)
    @cython.locals(figures=Figures)
    cpdef count_passed(self, where)
