"""What is wrong with a configuration, told so that its author can mend it."""


class ConfigurationError(Exception):
    """A setting that cannot be used: names the file, the key, the value and what is allowed.

    With an empty key the whole file cannot be used, and `allowed` says why.
    """

    def __init__(self, file: str, key: str, value: object, allowed: str) -> None:
        shown = list(value) if isinstance(value, tuple) else value  # as TOML writes it
        found = f"{file}: {key} = {shown!r} is not allowed" if key else file
        super().__init__(f"{found}: {allowed}")
        self.file = file
        self.key = key
        self.value = value
        self.allowed = allowed
