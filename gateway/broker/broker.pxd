import cython

from gateway.broker.client cimport Client
from gateway.broker.deadlines cimport Deadlines
from gateway.broker.handlers cimport go_on, handle
from gateway.broker.publishing.topic_admissions cimport TopicAdmissions
from gateway.counters cimport Counters
from gateway.mqtt.connection cimport Connection
from gateway.mqtt.codec.publish_properties cimport PropertyCache
from gateway.routing.budget cimport Budget
from gateway.routing.router cimport Router
from gateway.session.session cimport Session
from gateway.session.traffic cimport Traffic

cdef class Broker:
    cdef object _packets_received
    cdef object _packets_sent
    cdef public TopicAdmissions admissions
    cdef public list connection_lines
    cdef public object alias_budget
    cdef readonly Budget budget
    cdef readonly object channels
    cdef public object clients
    cdef public object clock_ahead
    cdef public object connections
    cdef public object connects
    cdef public Counters counters
    cdef public Deadlines deadlines
    cdef readonly object delays
    cdef readonly object delivery_classes
    cdef public object durability
    cdef public object durability_classes
    cdef public object ended_subscriptions
    cdef public object expressions
    cdef public object failed_logins
    cdef public object inbound_alias_figures
    cdef public object listeners
    cdef public object memory
    cdef public object new_client_id
    cdef public object randrange
    cdef public object on_silence
    cdef public PropertyCache property_cache
    cdef public object queue_memory
    cdef public str refusal
    cdef public object replays
    cdef public object retained
    cdef public Router router
    cdef public object session_limits
    cdef public object sessions
    cdef public object settings
    cdef readonly object shares
    cdef public object sockets
    cdef public object store
    cdef public object subscription_filters
    cdef public object topic_limits
    cdef public Traffic traffic

    cpdef packet_size(self, info)
    cpdef bint receive(self, Client client, bytes data, instant) except -1
    @cython.locals(connection=Connection, traffic=Traffic, first_byte=int,
                   session=Session, asked="long long")
    cdef bint _handle_packets(self, Client client, instant) except -1
    cdef _fail(self, Client client, error)
    cdef _refuse(self, Client client, error)
