import cython

@cython.final
cdef class Selection:
    cdef object _budget
    cdef object _message
    cdef dict _verdicts

    cpdef bint wants(self, subscription, bint decided=*) except -1
    cpdef list filtered(self, indexes)
    cpdef list wanted(self, subscriptions)
    cpdef choose(self, members)
