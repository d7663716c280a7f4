import cython

from gateway.mqtt.output cimport Barrier

@cython.final
cdef class OutboxRow:
    cdef object __weakref__
    cdef public bint awaits_commit
    cdef public Barrier barrier
    cdef public object claimed
    cdef public object client_id
    cdef public object content_type
    cdef public object correlation_data
    cdef public bint deleted
    cdef public object ending
    cdef public object epoch
    cdef public object id
    cdef public object lane
    cdef public object message_expiry
    cdef public object uplinks
    cdef public object payload
    cdef public object payload_format
    cdef public object qos
    cdef public object response_topic
    cdef public object retain
    cdef public object seq
    cdef public object size
    cdef public object stepped
    cdef public object stream
    cdef public object time
    cdef public object topic
    cdef public object user_properties
    cdef public object username

cpdef OutboxRow row_of_message(message, epoch, stream, seq, lane)

@cython.locals(text=str, name=str, value=str)
@cython.locals(record=Py_ssize_t, size=Py_ssize_t, local=Py_ssize_t, overflow=Py_ssize_t)
cpdef Py_ssize_t row_size(OutboxRow row) except -1
