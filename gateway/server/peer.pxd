import cython

cpdef peer_name(transport)

cpdef bint is_local(transport) except -1

cpdef address_name(address)
