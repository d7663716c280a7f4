from gateway.storage.sessions.session_changes cimport Changes

cdef class SessionRecord:
    cdef Changes _changes
    cdef object _store
    cdef object _within
    cdef readonly object client_id
    cdef public object expiry_interval
    cdef public object home
    cdef public object left_at
    cdef public object number
    cdef public object username

    cdef Changes _begun(self)
