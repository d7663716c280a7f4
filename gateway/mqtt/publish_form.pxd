cpdef Py_ssize_t behind_topic(int qos, bint properties)
