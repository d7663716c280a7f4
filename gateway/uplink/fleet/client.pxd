import cython

from gateway.mqtt.framing cimport Framer
from gateway.uplink.fleet.message cimport FleetMessage

cdef int _CONNACK
cdef int _MQTT_5
cdef int _PUBACK
cdef int _SHORT_PUBACK

@cython.final
cdef class PacketIdentifiers:
    cdef readonly set in_use
    cdef public int last

    @cython.locals(mid=int)
    cpdef int next(self) except -1
    cpdef hold(self, int mid)
    cpdef release(self, int mid)

@cython.final
cdef class KeepAlive:
    cdef object _ping_sent_at
    cdef double _received_at
    cdef double _sent_at
    cdef public bint received
    cdef public double seconds
    cdef public bint sent

@cython.final
cdef class FleetClient:
    cdef object _acknowledged
    cdef object _begin_connection
    cdef bint _bridge
    cdef bint _closed
    cdef object _error
    cdef Framer _framer
    cdef KeepAlive _keep_alive
    cdef public object _loop
    cdef object _on_message
    cdef object _opening
    cdef object _oversized
    cdef object _settings
    cdef object _stream
    cdef object _unnumbered
    cdef dict _unsubscribed
    cdef list _waiting
    cdef object _wake
    cdef readonly object connack
    cdef readonly object limits
    cdef public object on_skipped
    cdef public object on_read
    cdef public object on_suback
    cdef readonly PacketIdentifiers packet_identifiers
    cdef readonly bint session_present
    cdef readonly int version

    @cython.locals(mid=int)
    cpdef publish(self, FleetMessage message)
    cpdef flush(self)
    cdef _handle_bytes(self, data)
    cdef bytes _pass_by(self, oversized, data)
    @cython.locals(framer=Framer, size=Py_ssize_t, start=Py_ssize_t, end=Py_ssize_t, buffer=bytes,
                   first_byte=int, mid=int)
    cdef _handle_whole(self, data)
    cdef _read(self, bytes buffer, int first_byte, Py_ssize_t start, Py_ssize_t end)
