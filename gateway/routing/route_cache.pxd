import cython

from gateway.routing.route cimport text_size

@cython.final
cdef class RouteCache:
    cdef dict _old
    cdef Py_ssize_t _old_bytes
    cdef dict _young
    cdef Py_ssize_t _young_bytes
    cdef readonly long long changes
    cdef public Py_ssize_t hits
    cdef public Py_ssize_t maximum_bytes
    cdef readonly Py_ssize_t misses

    cpdef get(self, str topic)
    @cython.locals(size=Py_ssize_t)
    cpdef put(self, str topic, route)
    cpdef forget(self, str topic_filter)

cdef Py_ssize_t _size(str topic, route)
