import cython

@cython.final
cdef class TopicLevels:
    cdef unsigned int[::1] _begins
    cdef unsigned int[::1] _ends
    cdef unsigned int _free
    cdef unsigned int _holes
    cdef Py_ssize_t _mask
    cdef unsigned int _size
    cdef unsigned int[::1] _table
    cdef bytearray _texts
    cdef unsigned int[::1] _uses
    cdef readonly unsigned int count

    @cython.locals(place=Py_ssize_t, number=cython.uint)
    cpdef unsigned int find(self, bytes text)
    @cython.locals(begin=cython.uint, size=Py_ssize_t, place=cython.uint)
    cdef bint _is(self, unsigned int number, bytes text)
    cpdef bytes text(self, unsigned int number)
    @cython.locals(number=cython.uint)
    cpdef unsigned int use(self, bytes text)
    cpdef release(self, unsigned int number)
    @cython.locals(number=cython.uint)
    cdef unsigned int _add(self, bytes text)
    @cython.locals(number=cython.uint)
    cdef unsigned int _new_number(self)
    cdef _resize_columns(self, unsigned int room)
    @cython.locals(place=Py_ssize_t)
    cdef _put(self, unsigned int number, bytes text)
    cdef _remove(self, unsigned int number)
    @cython.locals(hole=Py_ssize_t, place=Py_ssize_t, home=Py_ssize_t)
    cdef _take(self, unsigned int number)
    @cython.locals(number=cython.uint)
    cdef _rebuild_table(self, Py_ssize_t size)
    @cython.locals(number=cython.uint)
    cdef _cut_back(self)
    @cython.locals(number=cython.uint, texts=bytearray, text=bytearray)
    cdef _close_holes(self)
