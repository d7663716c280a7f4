import cython

cdef class Pledge:
    cdef public object batch
    cdef public object on_settled
    cdef public Py_ssize_t outstanding

    cpdef add(self)
    cpdef settle(self)

@cython.final
cdef class _Part:
    cdef Py_ssize_t acknowledgements
    cdef bytearray data
    cdef readonly long long mark
    cdef Pledge pledge

    cdef bint held(self, long long committed)
    cdef bint covers(self, long long mark, Pledge pledge)

@cython.final
cdef class Output:
    cdef object _alone
    cdef Py_ssize_t _noted
    cdef list _parts
    cdef readonly Py_ssize_t acknowledgements
    cdef readonly Py_ssize_t size
    cdef public object transport

    @cython.locals(last=_Part)
    cpdef append(self, data, long long mark=*, Pledge pledge=*)
    cpdef bint leave_at_once(self, data) except -1
    @cython.locals(last=_Part)
    cpdef note_acknowledgements(self, Py_ssize_t count)
    @cython.locals(parts=list, first=_Part, part=_Part, data=bytearray, free=Py_ssize_t)
    cpdef object take(self, long long committed)
    @cython.locals(part=_Part)
    cdef list _among_parts(self)
