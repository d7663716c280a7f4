import cython

from gateway.mqtt.message cimport Message
from gateway.mqtt.output cimport Barrier

@cython.final
cdef class OutboxRow:
    cdef object __weakref__
    cdef public bint awaits_commit
    cdef public Barrier barrier
    cdef public object claimed
    cdef public bint deleted
    cdef public double due
    cdef public object ending
    cdef public object epoch
    cdef public object id
    cdef public object lane
    cdef public Message message
    cdef public object message_expiry
    cdef public object seq
    cdef public object size
    cdef public object stepped
    cdef public object stream
    cdef public object time
    cdef public object uplinks

@cython.locals(message=Message, text=str, name=str, value=str)
@cython.locals(record=Py_ssize_t, size=Py_ssize_t, local=Py_ssize_t, overflow=Py_ssize_t)
cpdef Py_ssize_t row_size(OutboxRow row) except -1
