import cython

from gateway.session.queue_memory cimport QueueMemory

cdef class DeliveryQueue:
    cdef long long _bytes
    cdef double _expires
    cdef readonly object _head
    cdef readonly long long _head_bytes
    cdef Py_ssize_t _head_messages
    cdef QueueMemory _memory
    cdef readonly long long _memory_bytes
    cdef readonly object _rest
    cdef object _tail
    cdef Py_ssize_t _tail_messages
    cdef public long long maximum_bytes
    cdef public Py_ssize_t maximum_messages

    cpdef bint over(self, Py_ssize_t more) except -1
    cpdef bint at_bound_with(self, Py_ssize_t more) except -1
    cpdef bint append(self, delivery) except -1
    cpdef restore(self, delivery)
    cpdef first(self)
    cpdef popleft(self)
    cpdef take_run(self, waiting, Py_ssize_t count)
    cdef _to_head(self, delivery)
    cdef _from_head(self, delivery)
    cdef _open_next(self, waiting)
    cdef _to_tail(self, delivery)
    cdef _refill(self)
    cdef _remember(self, delivery)
    cdef _forget(self, delivery)
    cdef _remove(self, delivery)
    cdef _lose(self, Py_ssize_t messages, long long size)
