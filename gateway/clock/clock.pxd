cdef class Clock:
    cpdef nanoseconds(self)
    cpdef wall_ms(self)
    cpdef uptime_ms(self)
