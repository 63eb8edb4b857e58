"""The errors that a user sees as one line."""


class RosettaError(Exception):
    """Something the user can mend; the message is one line: what is wrong and what to do."""


class Unavailable(RosettaError):
    """An environment that cannot be had on this machine; its rows are skipped with this reason."""


class SlotLost(RosettaError):
    """A GPU that was there no longer answers; its runs go elsewhere, or fail with this reason."""
