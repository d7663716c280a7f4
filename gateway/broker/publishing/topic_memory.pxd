import cython

from gateway.mqtt.publication cimport PacketBatch, Publication, body_start

cdef int _DOLLAR
cdef Py_ssize_t _PAYLOAD_BYTES
cdef Py_ssize_t _MAXIMUM_HELD
cdef double _STEP
cdef double _WEIGHT

@cython.final
cdef class Topic:
    cdef double _begun
    cdef Py_ssize_t _counted
    cdef double _ends
    cdef readonly double arrived
    cdef public long long bytes
    cdef readonly object client_id
    cdef public Py_ssize_t count
    cdef readonly double interval
    cdef public Publication last
    cdef readonly bytes payload
    cdef public Py_ssize_t place
    cdef readonly int qos
    cdef readonly Py_ssize_t size

    @cython.locals(publication=Publication, packets=PacketBatch, place=Py_ssize_t, start=Py_ssize_t,
                   end=Py_ssize_t)
    cpdef read(self)
    @cython.locals(interval=double, weight=double)
    cdef _end_step(self)

cdef class TopicMemory:
    cdef object _counters
    cdef object _forgotten
    cdef readonly Py_ssize_t maximum
    cdef readonly dict topics

    @cython.locals(packets=PacketBatch, topic=Topic)
    cpdef Topic note(self, Publication publication, Py_ssize_t first, Py_ssize_t count)
    @cython.locals(packets=PacketBatch, topics=dict, arrived=double, data=bytes, large=bint,
                   last=Py_ssize_t, place=Py_ssize_t, start=Py_ssize_t, offset=Py_ssize_t,
                   end=Py_ssize_t, body=Py_ssize_t, name=bytes, topic=Topic)
    cpdef note_mixed(self, Publication publication, Py_ssize_t first, Py_ssize_t count)
    @cython.locals(topic=Topic)
    cdef Topic _topic(self, bytes name, double arrived)
