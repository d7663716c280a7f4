import cython

@cython.final
cdef class Changes:
    cdef public dict begun_runs
    cdef public list gone
    cdef public Py_ssize_t gone_messages
    cdef public list gone_runs
    cdef public dict incoming
    cdef public dict lent
    cdef public dict lent_runs
    cdef public dict owed
    cdef public dict owed_runs
    cdef public dict packet_ids
    cdef public set released
    cdef public dict runs
    cdef public dict subscriptions
