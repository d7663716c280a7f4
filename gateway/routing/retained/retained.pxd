import cython

from gateway.mqtt.publication cimport Publication
from gateway.routing.retained.log cimport Cursor, RetainedLog
from gateway.routing.retained.topics cimport RetainedTopics

cdef Py_ssize_t _LEVEL_OVERHEAD

@cython.final
cdef class RetainedMessages:
    cdef Py_ssize_t _bytes
    cdef dict _expiring
    cdef RetainedTopics _topics
    cdef readonly RetainedLog log
    cdef public Py_ssize_t maximum_bytes
    cdef public Py_ssize_t maximum_messages

    @cython.locals(most="long long", fits=bint)
    cpdef bint has_room(self, Publication publication, Py_ssize_t first, Py_ssize_t count) except -1
    @cython.locals(log=RetainedLog, before=Publication, size=Py_ssize_t, free=Py_ssize_t,
                   more=Py_ssize_t, levels=Py_ssize_t)
    cpdef bint set(self, Publication publication) except -1
    @cython.locals(found=list)
    cpdef list find(self, str topic_filter, double now)
    @cython.locals(found=list, topics=list, end=Py_ssize_t)
    cpdef list few(self, str topic_filter, Cursor cursor, Py_ssize_t most, double now)
    @cython.locals(found=list)
    cpdef list read(self, str topic_filter, Cursor cursor, Py_ssize_t most, double now)
    cdef list _of(self, list topics)
    cdef list _live(self, list found, double now)
    cdef _remove(self, str topic)

cdef bint _is_empty(Publication publication) except -1

cdef bint _is_topic(str topic_filter) except -1

@cython.locals(found=list, topic=str)
cdef list _ordinary(list messages)

@cython.locals(names=list, has_rest=bint, count=Py_ssize_t, named=list, found=list, topic=str,
               levels=list, depth=Py_ssize_t)
cdef list _matching(list messages, str topic_filter)
