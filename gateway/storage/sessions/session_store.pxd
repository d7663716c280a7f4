import cython

from gateway.mqtt.publication cimport Publication
from gateway.storage.sessions.delivery_row cimport DeliveryRow
from gateway.storage.sessions.session_journal cimport Changes, SessionJournal

@cython.locals(row=DeliveryRow, publication=Publication)
cdef _write_deliveries(add, add_rows, SessionJournal journal, Changes changes)
