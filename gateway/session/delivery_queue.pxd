from gateway.session.queue_account cimport QueueAccount

cdef class DeliveryQueue(QueueAccount):
    cdef readonly object _head
    cdef readonly long long _head_bytes
    cdef Py_ssize_t _head_messages
    cdef readonly object _rest
    cdef object _tail

    cpdef bint append(self, delivery) except -1
    cpdef restore(self, delivery)
    cpdef first(self)
    cpdef popleft(self)
    cpdef take_run(self, waiting, Py_ssize_t count)
    cdef _to_head(self, delivery)
    cdef _from_head(self, delivery)
    cdef _to_tail(self, delivery)
    cdef _refill(self)
    cdef _lose(self, Py_ssize_t messages, long long size)
