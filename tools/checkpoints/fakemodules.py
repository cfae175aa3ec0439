"""Stand-ins for the classes of packages that are not needed, so that Python's own pickler writes what theirs would."""
import sys
import types


def module(name, **names):
    """Registers a module with these classes and functions under their public names."""
    made = sys.modules.setdefault(name, types.ModuleType(name))
    for key, value in names.items():
        value.__module__, value.__qualname__, value.__name__ = name, key, key
        setattr(made, key, value)
    return made


class Call:
    """Pickled as `function(*arguments)`, with attributes set afterwards."""

    def __init__(self, function, arguments, state=None):
        self.reduced = (function, arguments) if state is None else (function, arguments, state)

    def __reduce_ex__(self, protocol):
        return self.reduced


def new_function():
    def function(*arguments):
        raise TypeError("a stand-in: only its name is pickled")
    return function
