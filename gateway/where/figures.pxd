cdef class Figures:
    cdef public long long evaluated
    cdef public long long nanoseconds
    cdef public long long null
    cdef public long long over_budget
    cdef public long long passed
    cdef public long long samples
