import cython

from gateway.routing.trie.held_numbers cimport HeldNumbers
from gateway.routing.trie.levels cimport TopicLevels
from gateway.routing.trie.nodes cimport TrieNodes

cdef unsigned int _A_CHILD
cdef unsigned int _HAS_PLUS
cdef unsigned int _HAS_REST
cdef Py_ssize_t _MAXIMUM_NODES
cdef unsigned int _ROOT

@cython.final
cdef class TopicTrie:
    cdef Py_ssize_t _count
    cdef HeldNumbers _held
    cdef TopicLevels _levels
    cdef TrieNodes _nodes

    cpdef add(self, str topic_filter, unsigned int subscription)
    @cython.locals(node=cython.uint)
    cpdef bint discard(self, str topic_filter, unsigned int subscription)
    @cython.locals(found=list, node=cython.uint)
    cpdef list match(self, str topic)
    @cython.locals(table=TrieNodes, level=bytes, found=list, nodes=list, above=list,
                   node=cython.uint, number=cython.uint, children=cython.uint, below=cython.uint,
                   wild=bint, met=Py_ssize_t)
    cpdef list nodes(self, str topic)
    @cython.locals(node=cython.uint, level=bytes, number=cython.uint)
    cpdef unsigned int find(self, str topic_filter)
    @cython.locals(node=cython.uint, level=bytes, number=cython.uint, below=cython.uint)
    cpdef unsigned int reach(self, str topic_filter)
    @cython.locals(levels=list)
    cpdef str topic_filter(self, unsigned int node)
    @cython.locals(word=cython.uint)
    cpdef put(self, unsigned int node, unsigned int subscription)
    @cython.locals(word=cython.uint)
    cpdef bint remove(self, unsigned int node, unsigned int subscription)
    cpdef Py_ssize_t first(self, unsigned int node, unsigned int minimum)
    @cython.locals(found=list)
    cpdef list held(self, unsigned int node)
    cdef _begin_levels(self)
    @cython.locals(nodes=TrieNodes, parent=cython.uint, number=cython.uint)
    cdef _reclaim(self, unsigned int node)
