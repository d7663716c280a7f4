cpdef bytes write_connack(packet, int version)

cdef bytes _written(properties)
