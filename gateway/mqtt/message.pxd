import cython

cdef bytes _DIGITS_ONLY
cdef bytes _LONG_NUMBER
cdef Py_ssize_t _JSON_BYTES
cdef Py_ssize_t _JSON_LEVELS
cdef Py_ssize_t _TWO_BRACKETS_A_LEVEL

cpdef parse_json(bytes payload)
cdef bint _is_too_deep(bytes payload) except -1

cdef class Message:
    cdef public object _decoded
    cdef public object _json
    cdef public object _levels
    cdef public object _user
    cdef public double arrived
    cdef public object barrier
    cdef public object client_id
    cdef public object commit_within
    cdef public object content_type
    cdef public object correlation_data
    cdef public object message_expiry
    cdef public dict part_values
    cdef public object payload
    cdef public object payload_format
    cdef public int qos
    cdef public object received_at
    cdef public object response_topic
    cdef public object retain
    cdef public object topic
    cdef public object user_properties
    cdef public object username
    cdef public long long work_left

    cpdef json(self)
    cpdef spend(self, long long work)
    cdef _decode(self)
