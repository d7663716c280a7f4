import cython

from gateway.mqtt.output cimport Pledge

@cython.auto_pickle(True)  # storage makes copies of it
cdef class Message:
    cdef public object _decoded
    cdef public object _json
    cdef public object _levels
    cdef public object _part_values
    cdef public object _user
    cdef public double arrived
    cdef public object client_id
    cdef public object commit_within
    cdef public object content_type
    cdef public object correlation_data
    cdef public Py_ssize_t holders
    cdef public object message_expiry
    cdef public Py_ssize_t owed
    cdef public object payload
    cdef public object payload_format
    cdef public Pledge pledge
    cdef public int qos
    cdef public object received_at
    cdef public object response_topic
    cdef public object retain
    cdef public long long row
    cdef public object shared
    cdef public Py_ssize_t size
    cdef public object topic
    cdef public object user_properties
    cdef public object username
