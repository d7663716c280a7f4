import cython

cdef int _MORE

@cython.locals(name=bytes, length=Py_ssize_t, rest=Py_ssize_t, head=bytes)
cpdef bytes publish_wire(int first_byte, topic, bytes middle, bytes payload)

@cython.locals(name=bytes, length=Py_ssize_t, rest=Py_ssize_t)
cpdef append_publish(bytearray data, int first_byte, str topic, bytes middle, bytes payload)
