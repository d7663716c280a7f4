"""How the judge says that the brokers disagree."""


class DisagreementError(AssertionError):
    """The broker does what it must not, or does not do what it must."""


def check(condition: object, text: str) -> None:
    if not condition:
        raise DisagreementError(text)
