import cython

cpdef peer_name(transport)

cpdef address_name(address)
