import cython

@cython.final
cdef class Cursor:
    cdef public Py_ssize_t end
    cdef public Py_ssize_t index

@cython.final
cdef class RetainedLog:
    cdef dict _cursors
    cdef Py_ssize_t _end
    cdef list _log
    cdef dict _indexes

    cpdef get(self, str topic)
    cpdef put(self, str topic, message)
    cpdef pop(self, str topic)
    cpdef Py_ssize_t index(self, str topic) except? -1
    cpdef Cursor open(self)
    cpdef close(self, Cursor cursor)
    @cython.locals(index=Py_ssize_t, found=list)
    cpdef list read(self, Cursor cursor, Py_ssize_t most)
    cpdef bint is_ahead(self, str topic) except -1
    cpdef renew(self, str topic)
    @cython.locals(log=list, indexes=dict)
    cpdef append(self, str topic, message)
    @cython.locals(before=list, cursor=Cursor, index=Py_ssize_t)
    cdef _close_up(self)

cdef Py_ssize_t _SPARE_ENTRIES
