import cython

from gateway.mqtt.publication cimport Publication
from gateway.routing.retained.topics cimport RetainedTopics

@cython.final
cdef class Cursor:
    cdef public Py_ssize_t end
    cdef public Py_ssize_t index

@cython.final
cdef class RetainedLog:
    cdef dict _cursors
    cdef Py_ssize_t _end
    cdef list _log
    cdef dict _indexes

    cpdef get(self, str topic)
    cpdef put(self, str topic, message)
    cpdef pop(self, str topic)
    cpdef Py_ssize_t index(self, str topic) except? -1
    cpdef Cursor open(self)
    cpdef close(self, Cursor cursor)
    @cython.locals(index=Py_ssize_t, found=list)
    cpdef list read(self, Cursor cursor, Py_ssize_t most)
    cpdef bint is_ahead(self, str topic) except -1
    cpdef renew(self, str topic)
    @cython.locals(log=list, indexes=dict)
    cpdef append(self, str topic, message)
    @cython.locals(before=list, cursor=Cursor, index=Py_ssize_t)
    cdef _close_up(self)

cdef Py_ssize_t _SPARE_ENTRIES

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
    cpdef bint has_capacity(self, Publication publication, Py_ssize_t first, Py_ssize_t count) except -1
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
