import cython

@cython.final
cdef class SocketSelector:
    cdef object _epoll
    cdef dict _keys
    cdef list _served
    cdef public object end_of_turn
    cdef public bint scheduled
    cdef public bint serving

    cpdef serve(self, int descriptor, served, int events)
    cpdef forget(self, int descriptor)
    cdef _make_place(self, int descriptor)
    @cython.locals(seconds=double, end=double, polled=list, ready=list, descriptor=int)
    cpdef list select(self, timeout=*)
