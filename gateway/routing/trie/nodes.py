"""The nodes of a topic trie: columns of parents, levels and held numbers, one table of edges."""

from gateway.routing.trie.columns import BYTES, LARGE, LEAST, capacity_for, resized, zeros

ROOT = 0

FIRST_EDGES = 64
"""Slots of the table of edges; at most 3/4 of them are used."""

HAS_PLUS = 1
HAS_REST = 2
"""Bits of a node's `_children`: a child for `+`, one for `#`; also the numbers of these levels."""

A_CHILD = 4
"""What each child adds to `_children`: their number is above the two bits."""

NODE = 13
"""Bytes of a node in all columns."""

EDGE = 4

AT_ONCE = 4_096
"""Nodes that move into a table of another size at once: some 2 ms in plain Python."""

STEP = 64
"""Nodes that move with each change if there are more: half a million at once took a quarter of a
second. They are more if few of many are left, so that all have moved before the next table is due,
a quarter of whose slots are filled until then."""

MANY = 63
"""Children from which on a dict counts them: the maximum above the two bits of a byte."""

MANY_OVERHEAD = 150
"""Bytes of a count in the dict."""

# Compiled, these are C names that no other module sees.
_A_CHILD = A_CHILD
_HAS_REST = HAS_REST
_FIRST_EDGES = FIRST_EDGES
_MANY = MANY * A_CHILD
_BYTE = 0xFF
_STEP = STEP
_WORD = 0xFFFF_FFFF
_LEVEL = 4  # bytes of a level in its column


class TrieNodes:
    """Nodes by number, found by their parent and level, which is a number too.

    A node holds one number of its owner's, 0 for none. The owner must cut a node without children
    that holds nothing; its number is then reused. Hashing is random in each process, so clients
    cannot choose levels whose edges collide.
    """

    __slots__ = (
        "_at_once",
        "_children",
        "_cuts",
        "_edges",
        "_free",
        "_held",
        "_level",
        "_level_factor",
        "_many",
        "_moved",
        "_old_edges",
        "_old_slots",
        "_parent",
        "_parent_factor",
        "_size",
        "_slots",
        "_step",
        "count",
    )

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._at_once = at_once
        # Python mixes a secret of the process into hashes of bytes; odd factors reach every slot
        self._parent_factor = hash(b"parent") & 0x7FFFFFFF | 1
        self._level_factor = hash(b"level") & 0x7FFFFFFF | 1
        self._clear()

    def _clear(self) -> None:
        self._parent = zeros(LEAST)  # of a free number: the next free one
        self._level = zeros(LEAST)  # 0 for a free number
        self._children = zeros(LEAST, BYTES)
        self._many: dict[int, int] = {}  # children of nodes that have MANY
        self._held = zeros(LEAST)
        self._edges = zeros(FIRST_EDGES)
        self._slots = FIRST_EDGES
        self._old_edges = zeros(1)  # the previous table, while nodes move from it
        self._old_slots = 0
        self._step = STEP
        self._moved = 1  # nodes below this have moved
        self._size = 1  # the root is 0; all used numbers are below this
        self._free = 0  # the first free number
        self._cuts = 0  # since the columns were last shortened
        self.count = 0  # nodes without the root

    def child(self, parent: int, level: int) -> int:
        """Return the child of `parent` for this level, 0 if it has none."""
        mixed = (parent * self._parent_factor + level * self._level_factor) & _WORD
        slot = mixed * self._slots >> 32  # a multiplication instead of a modulo allows any size
        while True:  # it ends, since a quarter of the slots is free
            node = self._edges[slot]
            if node == 0:
                return self._old_child(parent, level) if self._old_slots else 0
            if self._level[node] == level and self._parent[node] == parent:
                return node
            slot += 1
            if slot == self._slots:
                slot = 0

    def _old_child(self, parent: int, level: int) -> int:
        """Return the child of `parent` for this level by the old table, 0 if it has none."""
        mixed = (parent * self._parent_factor + level * self._level_factor) & _WORD
        slot = mixed * self._old_slots >> 32
        while True:
            node = self._old_edges[slot]
            if node == 0:
                return 0
            # the columns may have been shortened since, and the number may be another node's now
            if node < self._size and self._level[node] == level and self._parent[node] == parent:
                return node
            slot += 1
            if slot == self._old_slots:
                slot = 0

    def children(self, node: int) -> int:
        """Return HAS_PLUS and HAS_REST, if set, and A_CHILD times the number of children.

        That number is at most MANY.
        """
        return self._children[node]

    def held(self, node: int) -> int:
        """Return what the node holds."""
        return self._held[node]

    def hold(self, node: int, number: int) -> None:
        """Set the node's held number, 0 for none."""
        self._held[node] = number

    def parent(self, node: int) -> int:
        """Return the parent of a node other than the root."""
        return self._parent[node]

    def level(self, node: int) -> int:
        """Return the level of a node other than the root."""
        return self._level[node]

    def grow(self, parent: int, level: int) -> int:
        """Return a new child of `parent`, which has none for this level."""
        if 4 * (self.count + 1) > 3 * self._slots:  # probing gets slow in a fuller table
            self._rebuild_edges(self._slots + (self._slots >> 1))
        if self._old_slots:
            self._move(self._step)  # before the node exists, so that it is inserted once
        node = self._new_number()
        self._parent[node] = parent
        self._level[node] = level
        self._put(node)
        self.count += 1
        kind = level if level <= _HAS_REST else 0
        children = self._children[parent]
        if children < _MANY - _A_CHILD:
            self._children[parent] = (children + _A_CHILD) | kind
        # the count no longer fits its bits
        else:
            self._children[parent] = children | _MANY | kind
            self._many[parent] = self._many.get(parent, MANY - 1) + 1
        return node

    def _remove_child(self, parent: int, level: int) -> None:
        kind = level if level <= _HAS_REST else 0
        children = self._children[parent] & ~kind & _BYTE
        if children >= _MANY and self._many[parent] > MANY:
            self._many[parent] -= 1
        else:
            self._many.pop(parent, None)
            children -= _A_CHILD
        self._children[parent] = children

    def cut(self, node: int) -> None:
        """Remove a node that has no children and holds nothing."""
        # the last node: all columns are freed without any search
        if self.count == 1:
            self._clear()
            return
        self._unlink(node)
        parent = self._parent[node]
        self._remove_child(parent, self._level[node])
        self._level[node] = 0
        self.count -= 1
        if not self._old_slots or node < self._moved:
            self._set_free(node)  # otherwise `_move` frees it when it reaches it
        self._cuts += 1
        if self._old_slots:
            self._move(self._step)
        else:
            self._give_back()

    def memory(self) -> int:
        """Return the bytes of columns and edges."""
        places = len(self._parent)
        if places >= LARGE:  # pages to itself: only written ones are allocated
            places = self._size
        return (
            NODE * places + MANY_OVERHEAD * len(self._many) + EDGE * (self._slots + self._old_slots)
        )

    def _home(self, parent: int, level: int) -> int:
        """Return the edge's first slot."""
        mixed = (parent * self._parent_factor + level * self._level_factor) & _WORD
        return mixed * self._slots >> 32

    def _new_number(self) -> int:
        node = self._free
        if node:
            self._free = self._parent[node]
            return node
        if self._size == len(self._parent):
            self._resize_columns(capacity_for(self._size))
        self._size += 1
        return self._size - 1

    def _set_free(self, node: int) -> None:
        self._parent[node] = self._free
        self._free = node

    def _give_back(self) -> None:
        """Free memory if it is much: of the table, or of free numbers at the columns' end."""
        # shortening copies all columns, so it needs as many removals
        if self._level[self._size - 1] == 0 and 2 * self._cuts > self._size:
            self._cuts = 0
            self._cut_back()
        # far below the fill at which the table grows, so that it does not alternate
        elif self._slots > _FIRST_EDGES and 6 * self.count < self._slots:
            self._cut_back()

    def _cut_back(self) -> None:
        # the last level that is not 0 is found without a loop in Python
        used = len(bytes(self._level[: self._size]).rstrip(b"\0"))
        self._size = max(1, (used + _LEVEL - 1) // _LEVEL)
        self._resize_columns(capacity_for(self._size))
        self._rebuild_edges(max(_FIRST_EDGES, 2 * self.count))

    def _resize_columns(self, capacity: int) -> None:
        self._parent = resized(self._parent, capacity, self._size)
        self._level = resized(self._level, capacity, self._size)
        self._children = resized(self._children, capacity, self._size)
        self._held = resized(self._held, capacity, self._size)

    def _put(self, node: int) -> None:
        """Insert the node's edge into the table, unless it is there."""
        parent, level = self._parent[node], self._level[node]
        mixed = (parent * self._parent_factor + level * self._level_factor) & _WORD
        slot = mixed * self._slots >> 32
        while self._edges[slot]:
            if self._edges[slot] == node:
                return
            slot += 1
            if slot == self._slots:
                slot = 0
        self._edges[slot] = node

    def _unlink(self, node: int) -> None:
        """Remove the node's edge from the table, and move those up that it had displaced."""
        hole = self._home(self._parent[node], self._level[node])
        while self._edges[hole] != node:
            if self._edges[hole] == 0:
                return  # it has not moved here yet
            hole = hole + 1 if hole + 1 < self._slots else 0
        slot = hole + 1 if hole + 1 < self._slots else 0
        while self._edges[slot]:
            other = self._edges[slot]
            home = self._home(self._parent[other], self._level[other])
            # It may fill the hole unless its home lies behind the hole.
            if self._distance(home, slot) >= self._distance(hole, slot):
                self._edges[hole] = other
                hole = slot
            slot = slot + 1 if slot + 1 < self._slots else 0
        self._edges[hole] = 0

    def _distance(self, first: int, last: int) -> int:
        """Return the steps from one slot of the table to another, wrapping at its end."""
        return last - first if last >= first else last - first + self._slots

    def _rebuild_edges(self, size: int) -> None:
        """Begin a table of another size; if the nodes are many they move into it step by step."""
        self._move(self._size)  # finish the previous move first
        self._old_edges, self._old_slots = self._edges, self._slots
        self._edges = zeros(size)
        self._slots = size
        self._free = 0  # `_move` rebuilds the list of free numbers
        self._step = max(_STEP, 4 * self._size // size)
        self._moved = 1
        if self._size <= self._at_once:
            self._move(self._size)

    def _move(self, most: int) -> None:
        """Move up to this many nodes from the old table into the new one.

        Nothing is removed from the old table: an entry counts only if the node still has the parent
        and level that are searched.
        """
        if not self._old_slots:
            return
        end = min(self._size, self._moved + most)
        for node in range(self._moved, end):
            if self._level[node]:
                self._put(node)
            else:
                self._set_free(node)
        self._moved = end
        if end >= self._size:
            self._old_edges, self._old_slots = zeros(1), 0
            self._give_back()
