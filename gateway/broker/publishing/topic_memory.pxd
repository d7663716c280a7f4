import cython

from gateway.mqtt.publication cimport PacketBatch, Publication

cdef int _DOLLAR
cdef Py_ssize_t _HELD_BYTES
cdef double _STEP
cdef double _WEIGHT

@cython.final
cdef class Topic:
    cdef double _begun
    cdef Py_ssize_t _new
    cdef Py_ssize_t _number
    cdef PacketBatch _packets
    cdef bytes _payload
    cdef Py_ssize_t _size
    cdef readonly double arrived
    cdef readonly long long bytes
    cdef readonly object client_id
    cdef readonly Py_ssize_t count
    cdef readonly double interval
    cdef readonly int qos

    @cython.locals(arrived=double, packets=PacketBatch)
    cdef note(self, Publication publication, Py_ssize_t number, Py_ssize_t count)
    @cython.locals(interval=double, weight=double)
    cdef _end_step(self, double arrived)
    @cython.locals(packets=PacketBatch, payload=bytes)
    cdef _read(self)

cdef class Watcher:
    cpdef note(self, Publication publication, Py_ssize_t first, Py_ssize_t count)

cdef class TopicMemory(Watcher):
    cdef object _counters
    cdef readonly Py_ssize_t maximum
    cdef readonly dict topics

    @cython.locals(number=Py_ssize_t)
    cpdef note(self, Publication publication, Py_ssize_t first, Py_ssize_t count)
    @cython.locals(topic=Topic)
    cdef _note(self, bytes name, Publication publication, Py_ssize_t number, Py_ssize_t count)
