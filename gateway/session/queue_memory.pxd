import cython

from gateway.mqtt.message cimport Message
from gateway.mqtt.message_size cimport message_size
from gateway.session.message_run cimport MessageRun

@cython.final
cdef class QueueMemory:
    cdef public long long bytes
    cdef public Py_ssize_t deliveries
    cdef public long long disk_bytes
    cdef public long long maximum_bytes
    cdef public long long maximum_disk_bytes
    cdef public Py_ssize_t messages
    cdef public Py_ssize_t paged
    cdef public long long paged_bytes

    cpdef keep(self, long long size)
    cpdef page(self, Py_ssize_t deliveries, long long size)
    cpdef charge(self, long long size)
    cpdef add(self, Message message)
    cpdef remove(self, Message message)
    @cython.locals(message=Message, deliveries=Py_ssize_t, new=Py_ssize_t, new_bytes="long long",
                   total="long long", size=Py_ssize_t)
    cpdef long long add_all(self, messages)
    @cython.locals(message=Message, deliveries=Py_ssize_t, gone=Py_ssize_t,
                   gone_bytes="long long", total="long long", size=Py_ssize_t)
    cpdef long long remove_all(self, messages)
    @cython.locals(count=Py_ssize_t)
    cpdef add_run(self, MessageRun run)
    @cython.locals(count=Py_ssize_t)
    cpdef remove_run(self, MessageRun run)
    cdef _count(self, Py_ssize_t deliveries, Py_ssize_t messages, long long size)
