import cython

from gateway.mqtt.framing cimport Framer

@cython.final
cdef class PlainPublishes:
    cdef int _first_byte
    cdef Framer _framer
    cdef int _qos
    cdef int _version
    cdef readonly Py_ssize_t count
    cdef readonly int packet_id
    cdef readonly bytes payload
    cdef readonly str topic

    @cython.locals(frame=tuple, buffer=bytes, start=Py_ssize_t, end=Py_ssize_t)
    cpdef bint take(self) except -1
    cpdef give_back(self)
    @cython.locals(name=Py_ssize_t, name_end=Py_ssize_t, newest=bint, payload=Py_ssize_t,
                   topic=str)
    cdef bint _read(self, bytes buffer, Py_ssize_t start, Py_ssize_t end) except -1
