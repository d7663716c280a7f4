from gateway.session.session cimport Session

cpdef set_will(broker, Session session, will)
