cpdef bytes encode(packet, int version)
