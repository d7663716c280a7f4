import cython

from gateway.routing.filters.operand_index cimport IndexEntry, OperandIndex

@cython.final
cdef class FilterIndex:
    cdef dict _entries
    cdef dict _operands
    cdef dict _others
    cdef readonly Py_ssize_t bytes

    @cython.locals(operand=OperandIndex)
    cpdef find(self, message, list found)
