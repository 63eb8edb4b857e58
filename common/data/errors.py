"""The one exception that loaders raise for data that is missing or wrong."""


class DataError(Exception):
    """Data that cannot be used; the message is one line: what is wrong and what to do."""
