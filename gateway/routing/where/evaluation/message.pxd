import cython

from gateway.mqtt.message cimport Message as AcceptedMessage
from gateway.mqtt.publication cimport Publication

cdef class Message(AcceptedMessage):
    cpdef json(self)
    cpdef forget_parts(self)
    cpdef spend(self, long long work)
    cdef _decode(self)

@cython.locals(message=Message)
cpdef Message message_of(Publication publication, Py_ssize_t number)
@cython.locals(message=Message)
cpdef Message make_message(Publication publication, Py_ssize_t number)
