import cython

from gateway.mqtt.framing cimport Framer
from gateway.uplink.fleet.message cimport FleetMessage

@cython.final
cdef class FleetClient:
    cdef object _acknowledged
    cdef object _begin_connection
    cdef bint _bridge
    cdef bint _closed
    cdef object _error
    cdef Framer _framer
    cdef object _keep_alive
    cdef public object _loop
    cdef object _on_message
    cdef object _opening
    cdef object _oversized
    cdef object _settings
    cdef object _stream
    cdef object _unnumbered
    cdef dict _unsubscribed
    cdef object _wake
    cdef readonly object connack
    cdef readonly object limits
    cdef public object on_skipped
    cdef public object on_read
    cdef public object on_suback
    cdef readonly object packet_identifiers
    cdef readonly bint session_present
    cdef readonly int version

    cpdef publish(self, FleetMessage message)
    cpdef flush(self)
    cdef _write(self, bytes data)
    cdef _handle_bytes(self, data)
    cdef bytes _pass_by(self, oversized, data)
    @cython.locals(framer=Framer, size=Py_ssize_t)
    cdef _handle_whole(self, data)
    cdef _read(self, bytes buffer, int first_byte, Py_ssize_t start, Py_ssize_t end)
