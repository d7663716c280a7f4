import cython

# Not final: one of several uplinks counts with a subclass (app/uplink/counters.py).
cdef class Counters:
    cdef dict _counts
    cdef readonly list before_reading
    cdef public dict values

    cpdef refresh(self)
    cpdef add(self, name, count=*)
    @cython.locals(counts=dict)
    cpdef add_each(self, tuple names)
    cpdef set(self, name, value)
    cpdef forget(self, name)
    cpdef count(self, name)
