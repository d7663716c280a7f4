import cython

@cython.final
cdef class Gathering:
    cdef double _lent_within
    cdef public Py_ssize_t changes
    cdef public Py_ssize_t lent
    cdef public long long lent_mark
    cdef public object writer

    cpdef firm(self, double within=*)
    @cython.locals(mark="long long", half=double)
    cpdef lend(self, double within)
    cpdef committed(self, long long batch)
    cpdef put_off(self)
    cpdef mark(self)
