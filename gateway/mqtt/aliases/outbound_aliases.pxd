import cython

@cython.final
cdef class Mapping:
    cdef readonly Py_ssize_t alias
    cdef public Py_ssize_t uses

@cython.final
cdef class OutboundAliases:
    cdef object _budget
    cdef Py_ssize_t _bytes
    cdef list _free
    cdef readonly object _mappings  # tests count what it holds
    cdef Py_ssize_t _maximum
    cdef Py_ssize_t _patience
    cdef Py_ssize_t _waited

    @cython.locals(mapping=Mapping, size=Py_ssize_t)
    cpdef tuple choose(self, bytes topic)
    cpdef close(self)
    cdef Py_ssize_t _add(self, bytes topic, Py_ssize_t size) except -1
    @cython.locals(fits=bint)
    cdef bint _admit(self, Py_ssize_t size) except -1
    cdef bint _fits(self, Py_ssize_t size) except -1
    cdef bint _replace(self, Py_ssize_t size) except -1
    @cython.locals(mapping=Mapping, size=Py_ssize_t)
    cdef Mapping _evict(self)
