import cython

from gateway.mqtt.publication cimport PacketBatch, Publication, body_start

cdef int _DOLLAR
cdef Py_ssize_t _PAYLOAD_BYTES
cdef double _STEP
cdef double _WEIGHT

@cython.final
cdef class Topic:
    cdef double _begun
    cdef Py_ssize_t _counted
    cdef readonly double arrived
    cdef readonly long long bytes
    cdef readonly object client_id
    cdef readonly Py_ssize_t count
    cdef double ends
    cdef readonly double interval
    cdef readonly bytes payload
    cdef readonly int qos
    cdef readonly Py_ssize_t size

    @cython.locals(interval=double, weight=double)
    cdef end_step(self)

cdef class Watcher:
    cpdef note(self, Publication publication, Py_ssize_t first, Py_ssize_t count)

cdef class TopicMemory(Watcher):
    cdef object _counters
    cdef readonly Py_ssize_t maximum
    cdef readonly dict topics

    @cython.locals(packets=PacketBatch, name=bytes, arrived=double, topic=Topic, data=bytes,
                   end=Py_ssize_t, size=Py_ssize_t, stop=Py_ssize_t)
    cpdef note(self, Publication publication, Py_ssize_t first, Py_ssize_t count)
    @cython.locals(packets=PacketBatch, topics=dict, arrived=double, data=bytes, qos=int,
                   last=Py_ssize_t, start=Py_ssize_t, offset=Py_ssize_t,
                   end=Py_ssize_t, size=Py_ssize_t, body=Py_ssize_t, name=bytes, topic=Topic)
    cdef _note_uneven(self, Publication publication, Py_ssize_t first, Py_ssize_t count)
    cdef Topic _begin(self, bytes name, double arrived)
