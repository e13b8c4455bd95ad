import unittest

from listing import pages


class Pages(unittest.TestCase):
    def test_full_pages_are_counted(self):
        self.assertEqual(pages([1, 2, 3, 4], 2), 2)
