"""Who runs this: a container's user may have neither a name nor a home folder."""

import getpass
import os


def complete() -> None:
    """Add the variables HOME and LOGNAME where neither they nor the system tell: libraries ask for both.

    The home folder is ``/`` then, as container runtimes have it.
    """
    if not os.path.isabs(os.path.expanduser("~")):
        os.environ["HOME"] = "/"
    try:
        getpass.getuser()
    except (KeyError, OSError):  # OSError from Python 3.13 on
        os.environ["LOGNAME"] = str(os.getuid())
