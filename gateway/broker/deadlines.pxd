import cython

@cython.final
cdef class Deadlines:
    cdef Py_ssize_t _count
    cdef readonly list _heap
    cdef dict _entries
    cdef readonly double earliest

    @cython.locals(entry=list)
    cpdef set(self, key, double due, action)
    @cython.locals(entry=list)
    cpdef discard(self, key)
    cdef _empty(self, list entry)
