# Not final: one of several uplinks counts with a subclass (app/uplink/counters.py).
cdef class Counters:
    cdef readonly list before_reading
    cdef public dict values

    cpdef refresh(self)
    cpdef add(self, name, count=*)
    cpdef add_each(self, tuple names)
    cpdef set(self, name, value)
    cpdef forget(self, name)
    cpdef count(self, name)
