cdef class Recipient:
    cdef public object identifiers
    cdef public int qos
    cdef public object retain
    cdef public object subscriber
    cdef public object topic_filters

    cpdef add(self, topic_filter, int qos, retain, identifier)

cdef class SharedRecipient(Recipient):
    pass
