cdef class Recipient:
    cdef public object identifiers
    cdef public int qos
    cdef public object retain
    cdef public object subscriber
    cdef public object topic_filters

    cpdef add(self, int qos, retain, identifier)
    cpdef name(self, topic_filter)

cdef class SharedRecipient(Recipient):
    pass
