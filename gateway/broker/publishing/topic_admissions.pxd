import cython

from gateway.broker.publishing.topic_memory cimport Topic
from gateway.routing.route cimport Route
from gateway.routing.router cimport Router

@cython.final
cdef class TopicAdmission:
    cdef public object addressee
    cdef public bint common
    cdef public bint delayed
    cdef public object durability
    cdef public long long epoch
    cdef public object fault
    cdef public bint guarded
    cdef public object refusal
    cdef public Topic remembered
    cdef public dict rights
    cdef readonly Route route
    cdef public Py_ssize_t size
    cdef public bint special
    cdef readonly str topic
    cdef public object writer

    cpdef commit_within(self, of_client)

@cython.final
cdef class TopicAdmissions:
    cdef Py_ssize_t _bytes
    cdef object _durability_classes
    cdef long long _epoch
    cdef object _limits
    cdef dict _old
    cdef Router _router
    cdef dict _routes
    cdef dict _young
    cdef public list joined
    cdef public long long maximum_evaluations
    cdef public Py_ssize_t decisions
    cdef public Py_ssize_t hits
    cdef public Py_ssize_t maximum_bytes
    cdef public Py_ssize_t misses
    cdef public bint p2p

    @cython.locals(admission=TopicAdmission)
    cpdef TopicAdmission find(self, bytes topic_name)
    @cython.locals(hits=Py_ssize_t, misses=Py_ssize_t, admission=TopicAdmission)
    cpdef TopicAdmission find_again(self, bytes topic_name)
    @cython.locals(other=TopicAdmission, route=Route)
    cpdef bint same_route(self, TopicAdmission admission, access, bytes topic_name) except -1
    cpdef bint may_write(self, TopicAdmission admission, access) except -1
    @cython.locals(rights=dict)
    cpdef int rights(self, TopicAdmission admission, access) except -1
    cpdef reader(self, TopicAdmission admission)
    cpdef forget_topic(self, bytes topic_name)
    cpdef forget_all(self)
    @cython.locals(admission=TopicAdmission, match=tuple, route=Route)
    cdef TopicAdmission _make(self, bytes topic_name)
    @cython.locals(size=Py_ssize_t, route=Route)
    cdef _store(self, bytes topic_name, TopicAdmission admission)
    @cython.locals(target_bytes=Py_ssize_t, admission=TopicAdmission)
    cdef _evict(self)
    @cython.locals(route=Route)
    cdef _discard(self, TopicAdmission admission)
