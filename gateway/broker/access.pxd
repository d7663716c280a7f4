import cython

@cython.final
cdef class Anonymous:
    cpdef check(self, username, password)
