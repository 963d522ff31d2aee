"""The names of this host's users."""

import pwd


def user_name(uid: int) -> str:
    """Return a user's name, or the number where the system knows none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
