import cython

from gateway.broker.channels.alarm cimport Alarm
from gateway.broker.channels.consumers cimport Consumers
from gateway.broker.channels.deliveries cimport Deliveries
from gateway.broker.channels.dispatcher cimport Dispatcher
from gateway.broker.channels.figures cimport ChannelFigures
from gateway.broker.channels.waiting cimport Waiting
from gateway.mqtt.delivery_policy cimport DeliveryPolicy
from gateway.mqtt.publication cimport PacketBatch, Publication
from gateway.mqtt.publication cimport Publication
from gateway.session.session cimport Session
from gateway.session.span cimport Span

@cython.final
cdef class MessageSizes:
    cdef long long _largest
    cdef long long _smallest

    @cython.locals(packets=PacketBatch)
    cpdef Py_ssize_t fitting(
        self, Publication publication, Py_ssize_t first, Py_ssize_t most) except? -1

cdef Py_ssize_t _AT_ONCE

cdef class Channel(Session):
    cdef object _dead_letters
    cdef Dispatcher _dispatcher
    cdef MessageSizes _sizes
    cdef readonly Alarm alarm
    cdef readonly Consumers consumers
    cdef readonly Deliveries deliveries
    cdef readonly ChannelFigures figures
    cdef readonly object level
    cdef public object levels
    cdef readonly object settings
    cdef readonly Waiting waiting

    @cython.locals(run_length=Py_ssize_t, queued=bint, span=Span, channel=Channel)
    cpdef accept(
        self, Publication publication, Py_ssize_t first, Py_ssize_t count, int qos, bint retain=*,
        tuple subscription_identifiers=*, double now=*, bint reserved=*, str topic_filter=*,
        DeliveryPolicy policy=*)
    @cython.locals(given=Py_ssize_t, rest=Span, before=Py_ssize_t, number=Py_ssize_t)
    cdef bint _accept_span(self, Span span, double now, bint reserved) except -1
    cpdef forget(self, Span span, Py_ssize_t first, Py_ssize_t count)
    cdef bint _goes_at_once(self, Span span, double now, bint reserved) except -1
    @cython.locals(run_length=Py_ssize_t, channel=Channel)
    cpdef Py_ssize_t capacity(
        self, Publication publication, Py_ssize_t first, Py_ssize_t most, int qos) except -1
    @cython.locals(each=Channel)
    cpdef pump(self, double now)
    @cython.locals(left=Py_ssize_t)
    cpdef dispatch(self, double now)
