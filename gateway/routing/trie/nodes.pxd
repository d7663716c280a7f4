import cython

cdef unsigned int _A_CHILD
cdef unsigned int _BYTE
cdef unsigned int _FIRST_EDGES
cdef unsigned int _HAS_REST
cdef Py_ssize_t _LEVEL
cdef unsigned int _MANY
cdef unsigned int _STEP
cdef unsigned long long _WORD

@cython.final
cdef class TrieNodes:
    cdef unsigned int _at_once
    cdef unsigned char[::1] _children
    cdef unsigned int[::1] _edges
    cdef unsigned int _cuts
    cdef unsigned int _free
    cdef unsigned int[::1] _held
    cdef unsigned int[::1] _level
    cdef unsigned long long _level_factor
    cdef dict _many
    cdef unsigned int _moved
    cdef unsigned int[::1] _old_edges
    cdef unsigned long long _old_slots
    cdef unsigned int[::1] _parent
    cdef unsigned long long _parent_factor
    cdef unsigned long long _slots
    cdef unsigned int _step
    cdef unsigned int _size
    cdef readonly unsigned int count

    @cython.locals(mixed=cython.ulonglong, slot=cython.ulonglong, node=cython.uint)
    cpdef unsigned int child(self, unsigned int parent, unsigned int level)
    @cython.locals(mixed=cython.ulonglong, slot=cython.ulonglong, node=cython.uint)
    cdef unsigned int _old_child(self, unsigned int parent, unsigned int level)
    cpdef unsigned int children(self, unsigned int node)
    cpdef unsigned int held(self, unsigned int node)
    cpdef hold(self, unsigned int node, unsigned int number)
    cpdef unsigned int parent(self, unsigned int node)
    cpdef unsigned int level(self, unsigned int node)
    @cython.locals(children=cython.uint, kind=cython.uint, node=cython.uint)
    cpdef unsigned int grow(self, unsigned int parent, unsigned int level)
    @cython.locals(parent=cython.uint)
    cpdef cut(self, unsigned int node)
    @cython.locals(children=cython.uint, kind=cython.uint)
    cdef _remove_child(self, unsigned int parent, unsigned int level)
    cdef _clear(self)
    @cython.locals(mixed=cython.ulonglong)
    cdef unsigned long long _home(self, unsigned long long parent, unsigned long long level)
    @cython.locals(node=cython.uint)
    cdef unsigned int _new_number(self)
    cdef _set_free(self, unsigned int node)
    cdef _give_back(self)
    cdef _cut_back(self)
    cdef _resize_columns(self, unsigned int capacity)
    @cython.locals(parent=cython.ulonglong, level=cython.ulonglong, mixed=cython.ulonglong,
                   slot=cython.ulonglong)
    cdef _put(self, unsigned int node)
    @cython.locals(hole=cython.ulonglong, slot=cython.ulonglong, home=cython.ulonglong,
                   other=cython.uint)
    cdef _unlink(self, unsigned int node)
    cdef unsigned long long _distance(self, unsigned long long first, unsigned long long last)
    cdef _rebuild_edges(self, unsigned long long size)
    @cython.locals(node=cython.uint, end=cython.uint)
    cdef _move(self, unsigned int most)
