import cython

from gateway.storage.outbox.outbox_row cimport OutboxRow

@cython.locals(record=Py_ssize_t, size=Py_ssize_t)
cpdef Py_ssize_t row_size(OutboxRow row) except -1

@cython.locals(local=Py_ssize_t)
cdef Py_ssize_t _pages(Py_ssize_t record) except -1

cdef Py_ssize_t _share_of_leaf(Py_ssize_t local) except -1

cdef Py_ssize_t _length(str text) except -1
