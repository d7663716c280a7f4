import cython

cdef unsigned int _MANY
cdef unsigned int _STEP
cdef unsigned int _PIECE
cdef Py_ssize_t _SHORT
cdef unsigned int _OFFSET_MASK
cdef unsigned long long _WORD

@cython.final
cdef class TopicLevels:
    cdef unsigned int _at_once
    cdef unsigned int[::1] _begins
    cdef Py_ssize_t _bytes
    cdef unsigned int _cuts
    cdef unsigned int _free
    cdef unsigned int _holes
    cdef dict _many
    cdef Py_ssize_t _old_bytes
    cdef set _old_pieces
    cdef unsigned long long _old_slots
    cdef unsigned int[::1] _old_table
    cdef unsigned int _piece
    cdef unsigned long long _slots
    cdef unsigned int _size
    cdef unsigned short[::1] _sizes
    cdef list _spare
    cdef unsigned int _step
    cdef unsigned int[::1] _table
    cdef list _texts
    cdef unsigned char[::1] _uses
    cdef readonly unsigned int count
    cdef readonly unsigned int moved

    @cython.locals(size=Py_ssize_t, slot=cython.ulonglong, number=cython.uint)
    cpdef unsigned int find(self, bytes text)
    @cython.locals(size=Py_ssize_t, slot=cython.ulonglong, number=cython.uint)
    cdef unsigned int _old_find(self, bytes text)
    cdef unsigned long long _home(self, bytes text)
    @cython.locals(begin=cython.uint, size=Py_ssize_t, texts=bytearray, offset=cython.uint)
    cdef bint _is(self, unsigned int number, bytes text)
    @cython.locals(begin=cython.uint, texts=bytearray)
    cpdef bytes text(self, unsigned int number)
    @cython.locals(number=cython.uint)
    cpdef unsigned int use(self, bytes text)
    @cython.locals(number=cython.uint)
    cpdef unsigned int add(self, bytes text)
    @cython.locals(uses=cython.uint)
    cpdef use_again(self, unsigned int number)
    @cython.locals(uses=cython.uint)
    cpdef release(self, unsigned int number)
    cdef _release_one_of_many(self, unsigned int number)
    @cython.locals(number=cython.uint)
    cdef unsigned int _new_number(self)
    cdef _resize_columns(self, unsigned int capacity)
    @cython.locals(slot=cython.ulonglong)
    cdef _put(self, unsigned int number, bytes text)
    cdef _remove(self, unsigned int number)
    cdef _set_free(self, unsigned int number)
    @cython.locals(hole=cython.ulonglong, slot=cython.ulonglong, home=cython.ulonglong)
    cdef _unlink(self, unsigned int number)
    cdef unsigned long long _distance(self, unsigned long long first, unsigned long long last)
    cdef _rebuild_table(self, unsigned long long size)
    @cython.locals(number=cython.uint, end=cython.uint, text=bytes)
    cdef _move(self, unsigned int most)
    cdef _free_old_pieces(self)
    cdef _give_back(self)
    cdef _cut_back(self)
    @cython.locals(texts=bytearray)
    cdef _append(self, unsigned int number, bytes text)
    cdef _open_piece(self)
    cdef _close_holes(self)
