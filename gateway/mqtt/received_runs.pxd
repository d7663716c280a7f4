import cython

from gateway.mqtt.acknowledgement_run cimport AcknowledgementRun, acknowledgement_run
from gateway.mqtt.connection cimport Connection
from gateway.mqtt.fields cimport write_string
from gateway.mqtt.framing cimport Framer
from gateway.mqtt.packet_run cimport PacketRun
from gateway.mqtt.plain_publishes cimport PlainPublishes
from gateway.mqtt.publish_form cimport behind_topic
from gateway.mqtt.publish_run cimport PublishRun, publish_run

cdef int _PUBLISH

@cython.locals(framer=Framer)
cpdef Py_ssize_t frame_size(Connection connection) except -1

@cython.locals(name=bytes)
cpdef bytes plain_head(Connection connection, topic)

cpdef Py_ssize_t begins_with(Connection connection, bytes head) except -1

@cython.locals(least=Py_ssize_t)
cpdef Py_ssize_t begins_numbered(Connection connection, int first_byte, bytes topic) except -1

cpdef Py_ssize_t bytes_alone(
    Connection connection, bytes data, bytes head, int first_byte=*) except? -1

cpdef begin_run(Connection connection, Py_ssize_t size)

cpdef put_back(Connection connection)

@cython.locals(run=PacketRun)
cpdef PacketRun take_run(Connection connection, bytes head, long long largest)

@cython.locals(properties=bint, least=Py_ssize_t, run=PacketRun)
cpdef PublishRun find_run(Connection connection, bytes topic, long long largest, long long most)

cpdef take_numbered_run(Connection connection, PublishRun run)

cdef _pass_over(Connection connection, PacketRun run)

cpdef PlainPublishes plain_publishes(Connection connection, int qos)

cpdef count_plain(Connection connection, PlainPublishes packets, Py_ssize_t to_acknowledge)

cpdef int next_byte(Connection connection) except -1

cpdef AcknowledgementRun find_acknowledgements(Connection connection, int first_byte)

cpdef take_acknowledgements(Connection connection, Py_ssize_t count)

@cython.locals(run=AcknowledgementRun)
cpdef AcknowledgementRun acknowledgements_alone(Connection connection, bytes data)
