from gateway.broker.state cimport State
from gateway.session.session cimport Session

cpdef set_will(State state, Session session, will)
