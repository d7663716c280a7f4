import cython

from gateway.mqtt.output cimport Pledge
from gateway.session.inflight_run cimport InflightRun
from gateway.session.message_run cimport MessageRun
from gateway.storage.gathering cimport Gathering
from gateway.storage.session_changes cimport Changes
from gateway.storage.session_record cimport SessionRecord

cdef class SessionJournal(SessionRecord):
    cdef Py_ssize_t _last_place
    cdef public Py_ssize_t deliveries
    cdef public object in_runs
    cdef public bint open
    cdef public object queue

    cpdef bint lends(self, int qos, within) except -1
    @cython.locals(gathering=Gathering)
    cpdef lend_run(self, InflightRun sent, Pledge pledge)
    @cython.locals(changes=Changes, run=MessageRun, gathering=Gathering)
    cpdef done_run(self, InflightRun sent)
