import cython

from gateway.storage.engine.wake_up cimport WakeUp

cdef int _ENDED
cdef double _SHORT
cdef int _STEADY
cdef double NEVER
cdef double BEGINS

@cython.final
cdef class SocketSelector:
    cdef object _epoll
    cdef int _events
    cdef dict _keys
    cdef int _pause
    cdef Py_ssize_t _polls_left
    cdef list _served
    cdef int _short_waits
    cdef double _usual_wait
    cdef Py_ssize_t _watched
    cdef public bint begun
    cdef public object end_of_turn
    cdef readonly bint full
    cdef public object later
    cdef readonly long long polls
    cdef public double reading_until
    cdef public bint scheduled
    cdef public bint serving
    cdef public WakeUp wake_up

    cpdef serve(self, int descriptor, served, int events)
    cpdef forget(self, int descriptor)
    cdef _make_place(self, int descriptor)
    @cython.locals(seconds=double, now=double, before=double, end=double, polled=list, ready=list,
                   count=Py_ssize_t, waits=int, wake_up=WakeUp, wait=double)
    cpdef list select(self, timeout=*)
    cdef _count_polls(self, Py_ssize_t count)
    @cython.locals(ready=list, descriptor=int, events=int)
    cdef list _serve(self, list polled)
    @cython.locals(now=double, until=double)
    cpdef bint has_time(self)
    @cython.locals(due=double)
    cdef double _sooner(self, double seconds, double now) except? -1
    @cython.locals(end=double, after=double, polled=list)
    cdef list _stay_awake(self, double now)
