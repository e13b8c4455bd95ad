"""A list in pages."""


def pages(items, size):
    """How many pages of this size a list has."""
    return len(items) // size
