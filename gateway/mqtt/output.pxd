import cython

from gateway.mqtt.delivery_policy cimport DeliveryPolicy

cdef class Barrier:
    cdef public object on_settled
    cdef public Py_ssize_t outstanding

    cpdef add(self)
    cpdef settle(self)

@cython.final
cdef class Pending:
    cdef public long long changes
    cdef public long long deferred

@cython.final
cdef class _Part:
    cdef Py_ssize_t acknowledgements
    cdef Barrier barrier
    cdef readonly long long commit
    cdef bytearray data

    cdef bint held(self, long long committed)
    cdef bint covers(self, long long commit, Barrier barrier)

@cython.final
cdef class Buffered:
    cdef readonly list arrivals
    cdef double due
    cdef Py_ssize_t messages
    cdef Py_ssize_t size

@cython.final
cdef class Output:
    cdef Py_ssize_t _noted
    cdef list _parts
    cdef object _free
    cdef readonly Py_ssize_t acknowledgements
    cdef readonly Buffered buffered
    cdef readonly Py_ssize_t size

    @cython.locals(last=_Part, part=_Part, parts=list)
    cpdef append(
        self, data, long long commit=*, Barrier barrier=*, Py_ssize_t acknowledgements=*)
    @cython.locals(buffered=Buffered, step=double)
    cpdef hold(
        self, Py_ssize_t before, Py_ssize_t count, DeliveryPolicy policy, double now,
        double latest)
    cpdef release(self)
    @cython.locals(buffered=Buffered, held=bint)
    cpdef double held_until(self, double now) except -1
    @cython.locals(part=_Part)
    cdef list _begin_parts(self)
    @cython.locals(part=_Part)
    cpdef append_all(self, Output other)
    @cython.locals(parts=list, first=_Part, part=_Part, free=Py_ssize_t)
    cpdef object pop(self, long long committed, double now=*)
