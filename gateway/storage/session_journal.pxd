import cython

from gateway.mqtt.output cimport Pledge
from gateway.session.inflight_run cimport InflightRun
from gateway.session.message_run cimport MessageRun
from gateway.storage.gathering cimport Gathering
from gateway.storage.session_changes cimport Changes

cdef class SessionJournal:
    cdef Changes _changes
    cdef Py_ssize_t _last_place
    cdef object _store
    cdef object _within
    cdef readonly object client_id
    cdef public Py_ssize_t deliveries
    cdef public object expiry_interval
    cdef public object in_runs
    cdef public object left_at
    cdef public object number
    cdef public bint open
    cdef public object queue
    cdef public object username

    cpdef bint lends(self, int qos, within) except -1
    @cython.locals(gathering=Gathering)
    cpdef lend_run(self, InflightRun sent, Pledge pledge)
    @cython.locals(changes=Changes, run=MessageRun, gathering=Gathering)
    cpdef done_run(self, InflightRun sent)
    cdef Changes _begun(self)
