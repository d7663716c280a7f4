from gateway.session.queue_memory cimport QueueMemory

cdef class QueueAccount:
    cdef long long _bytes
    cdef double _expires
    cdef QueueMemory _memory
    cdef readonly long long _memory_bytes
    cdef Py_ssize_t _messages
    cdef public long long maximum_bytes
    cdef public Py_ssize_t maximum_messages

    cpdef bint over(self, Py_ssize_t more) except -1
    cpdef bint at_bound_with(self, Py_ssize_t more) except -1
    cdef _add(self, delivery)
    cdef _add_all(self, deliveries)
    cdef _remove(self, delivery)
    cdef long long _remove_all(self, deliveries) except -1
    cdef _remember(self, delivery)
    cdef _forget(self, delivery)
    cdef _add_paged(self, Py_ssize_t messages, long long size)
