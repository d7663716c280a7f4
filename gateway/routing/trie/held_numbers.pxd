import cython

cdef unsigned int _LIST
cdef Py_ssize_t _CHECKED

@cython.final
cdef class HeldNumbers:
    cdef object _free
    cdef Py_ssize_t _listed
    cdef list _lists

    cpdef unsigned int including(self, unsigned int word, unsigned int number)
    @cython.locals(count=Py_ssize_t)
    cpdef unsigned int excluding(self, unsigned int word, unsigned int number)
    @cython.locals(index=Py_ssize_t)
    cpdef bint holds(self, unsigned int word, unsigned int number)
    @cython.locals(index=Py_ssize_t)
    cpdef Py_ssize_t first(self, unsigned int word, unsigned int minimum)
    cpdef Py_ssize_t count(self, unsigned int word)
    cpdef gather(self, unsigned int word, list found)
    cdef unsigned int _store(self, numbers)
    cdef _drop(self, unsigned int index)
