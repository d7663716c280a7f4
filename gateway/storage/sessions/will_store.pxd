import cython

from gateway.storage.engine.gathering cimport Gathering

@cython.final
cdef class WillStore:
    cdef dict _changed
    cdef Gathering _gathering
    cdef set _kept

    cpdef drop(self, client_id)
