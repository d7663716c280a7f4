import cython

from gateway.mqtt.message_size cimport message_size
from gateway.session.inflight_message cimport InflightAlone
from gateway.session.inflight_run cimport InflightRun
from gateway.session.message_run cimport MessageRun

@cython.final
cdef class Inflight:
    cdef long long _bytes
    cdef public int _last
    cdef readonly int in_runs
    cdef public int limit
    cdef dict _messages
    cdef Py_ssize_t _order
    cdef list _runs
    cdef readonly object to_send_again

    @cython.locals(first=Py_ssize_t, taken=Py_ssize_t, room=Py_ssize_t, by_size="long long",
                   packet_id=Py_ssize_t, sent=InflightRun)
    cpdef Py_ssize_t room_for_run(self, Py_ssize_t size)
    @cython.locals(sent=InflightRun)
    cpdef InflightRun add_run(self, MessageRun run, int qos)
    @cython.locals(sent=InflightRun)
    cpdef InflightRun first_run(self, int qos)
    @cython.locals(sent=InflightRun)
    cpdef InflightRun first_unreleased(self)
    cpdef finish_run(self, InflightRun sent, Py_ssize_t count)
    @cython.locals(sent=InflightRun, messages=dict)
    cdef _open_runs(self)
    cdef dict _messages_to_fill(self)
    cdef Py_ssize_t _next(self)
    @cython.locals(first=Py_ssize_t, sent=InflightRun, end=Py_ssize_t)
    cdef bint _clear_of_runs(self, Py_ssize_t count) except -1
    cpdef begin(self, Py_ssize_t limit)
    cpdef tuple send_again(self)
    cpdef Py_ssize_t add(self, delivery)
    @cython.locals(messages=dict, packet_id=Py_ssize_t, size="long long")
    cpdef list add_all(self, deliveries)
    @cython.locals(messages=dict, found=list, size="long long")
    cpdef list finish(self, packet_ids, Py_ssize_t start=*)
    cpdef find(self, Py_ssize_t packet_id)
    cpdef remove(self, Py_ssize_t packet_id)
    @cython.locals(messages=dict, packet_id=Py_ssize_t, room=bint)
    cpdef Py_ssize_t add_alone(self, InflightAlone message) except -1
    @cython.locals(messages=dict)
    cpdef InflightAlone finish_alone(self, Py_ssize_t packet_id)
