import cython

from gateway.mqtt.acknowledgement_run cimport AcknowledgementRun
from gateway.session.message_run cimport MessageRun

@cython.final
cdef class InflightRun:
    cdef readonly Py_ssize_t count
    cdef readonly list deliveries
    cdef public Py_ssize_t done
    cdef readonly Py_ssize_t first
    cdef public object on_opened
    cdef public Py_ssize_t order
    cdef public long long place
    cdef readonly int qos
    cdef public Py_ssize_t released
    cdef public object row
    cdef readonly MessageRun run

    @cython.locals(sent=Py_ssize_t)
    cpdef Py_ssize_t acknowledged(self, AcknowledgementRun acknowledgements, Py_ssize_t start)
    @cython.locals(left=Py_ssize_t)
    cpdef Py_ssize_t received(self, AcknowledgementRun acknowledgements, Py_ssize_t start)
    cpdef list open(self)
