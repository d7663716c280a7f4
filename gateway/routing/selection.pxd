import cython

from gateway.routing.filter_index cimport FilterIndex
from gateway.routing.operand_index cimport IndexEntry

@cython.final
cdef class Selection:
    cdef object _budget
    cdef object _message
    cdef object _rights
    cdef dict _verdicts

    cpdef bint wants(self, subscription, bint decided=*) except -1
    @cython.locals(index=FilterIndex, entry=IndexEntry, found=list, decided=bint)
    cpdef list filtered(self, indexes)
    cpdef list wanted(self, subscriptions)
    cpdef choose(self, members, dict given=*)
