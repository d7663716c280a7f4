import cython

@cython.final
cdef class _Level:
    cdef readonly dict below
    cdef readonly str topic

@cython.final
cdef class RetainedTopics:
    cdef _Level _root

    @cython.locals(names=list, level=_Level, depth=Py_ssize_t, name=str)
    cpdef Py_ssize_t missing(self, str topic) except -1
    @cython.locals(names=list, level=_Level, depth=Py_ssize_t, name=str, others=list,
                   common=Py_ssize_t)
    cpdef Py_ssize_t add(self, str topic, Py_ssize_t most) except -1
    @cython.locals(names=list, level=_Level, path=list, name=str, removed=Py_ssize_t)
    cpdef Py_ssize_t remove(self, str topic) except -1
    @cython.locals(names=list, has_rest=bint, wild=Py_ssize_t, ending=str, found=list,
                   levels=list, depth=Py_ssize_t, name=str, singles=list, level=_Level)
    cpdef list match_few(self, str topic_filter, Py_ssize_t most)
    cpdef list match(self, str topic_filter)
    @cython.locals(following=list, singles=list, level=_Level)
    cdef tuple _descend(self, list levels, str name)
    @cython.locals(level=_Level)
    cdef list _with_all_below(self, list levels, list found, Py_ssize_t most)
    cdef _wild(self, _Level level)

@cython.locals(shortest=Py_ssize_t)
cdef Py_ssize_t _in_common(list names, list others, Py_ssize_t depth) except -1

@cython.locals(name=str)
cdef _Level _part(_Level level, list names, Py_ssize_t depth, Py_ssize_t common)

cdef Py_ssize_t _width(list levels) except -1

cdef _put(_Level level, list names, Py_ssize_t depth, str topic)

cdef _sort(found, list levels, list singles)

cdef Py_ssize_t _NO_LIMIT

cdef list _that_end(list topics, str ending, Py_ssize_t slashes)
