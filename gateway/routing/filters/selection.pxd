import cython

from gateway.mqtt.message cimport Message
from gateway.mqtt.publication cimport Publication
from gateway.routing.budget cimport Budget
from gateway.routing.filters.filter_index cimport FilterIndex
from gateway.routing.filters.filter_index cimport IndexEntry

cdef int _CUT_SHORT
cdef int _PASSED
cdef int _SKIPPED

@cython.final
cdef class Selection:
    cdef Budget _budget
    cdef list _postponed
    cdef Message _message
    cdef Py_ssize_t _number
    cdef Publication _publication
    cdef object _rights
    cdef dict _verdicts
    cdef readonly Py_ssize_t evaluations

    cdef Message _read_message(self)
    cpdef forget_parts(self)
    cpdef bint wants(self, subscription, bint decided=*, bint quick=*) except -1
    cdef bint _passes(self, where, Message message, subscription, bint decided, bint quick) except -1
    cpdef bint may_send(self, member) except -1
    @cython.locals(index=FilterIndex, entry=IndexEntry, found=list, postponed=list, budget=Budget, message=Message,
                   everybody=bint)
    cpdef list filtered(self, indexes)
    cpdef list wanted(self, subscriptions)
    @cython.locals(members=list, readiness=int, lowest=int, qos=int)
    cpdef choose(self, group, dict given=*, Py_ssize_t more=*)
