"""Why a bridge does not work, for its state and the log."""


class BridgeError(Exception):
    """What a bridge needs is not there or was lost: a device, a host, an extra.

    Its text says which in a few words. It is tried again, and logged without a traceback.
    """
