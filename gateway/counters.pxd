import cython

@cython.final
cdef class Counters:
    cdef public dict values

    cpdef add(self, name, count=*)
    cpdef set(self, name, value)
    cpdef forget(self, name)
    cpdef count(self, name)
