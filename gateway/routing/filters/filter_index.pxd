import cython

@cython.final
cdef class IndexEntry:
    cdef readonly bint decided
    cdef public object subscriptions
    cdef readonly object term
    cdef readonly object where

cdef class Equalities:
    cdef dict _numbers
    cdef dict _numeric_texts
    cdef dict _texts

    cpdef find(self, value, list found)

cdef class Bounds:
    cdef bint _above
    cdef bint _between
    cdef object _bisect
    cdef list _entries
    cdef list _highs
    cdef list _numbers

    @cython.locals(index=Py_ssize_t)
    cpdef find(self, value, list found)

@cython.final
cdef class OperandIndex:
    cdef readonly object read
    cdef readonly dict tables

@cython.final
cdef class FilterIndex:
    cdef dict _entries
    cdef dict _operands
    cdef dict _others
    cdef readonly Py_ssize_t bytes
    cdef readonly long long messages
    cdef readonly long long nanoseconds
    cdef readonly long long samples

    @cython.locals(operand=OperandIndex)
    cpdef find(self, message, list found)
