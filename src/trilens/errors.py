"""Every exception that trilens raises: what was given, what was expected, what to do."""


class TrilensError(Exception):
    """The root of all our errors. Its message is one line that a user can act on."""


class BadInput(TrilensError):
    """A document, query, file or parameter that cannot be used as given."""


class BadFilter(BadInput):
    """A metadata filter that is not of the documented form."""


class BadModel(TrilensError):
    """A model folder that is missing, incomplete, damaged or of another kind."""


class CollectionError(TrilensError):
    """The root of everything that can be wrong with a collection on disk."""


class CollectionMissing(CollectionError):
    """There is no collection at this path."""


class CollectionExists(CollectionError):
    """There is something at this path already."""


class CollectionLocked(CollectionError):
    """Another process is writing to this collection."""


class CollectionDamaged(CollectionError):
    """A file of the collection is missing, truncated, changed or not ours."""


class CollectionReadOnly(CollectionError):
    """The collection cannot be written: its folder is read-only or the disk is full."""


class UnknownFormat(CollectionError):
    """The collection was written by a version of trilens that this one does not know."""


class ServiceFailed(TrilensError):
    """Another service, which the user named, did not answer as expected."""
