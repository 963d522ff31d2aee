"""Kernel: rows put in order of their keys, equals staying as they are. Pure."""

from collections.abc import Sequence


def sort_rows(rows: list[int], keys: Sequence[float], count: int, spare: list[int]) -> None:
    """Sort the first rows by key, lowest first; `spare` is overwritten.

    Merging from the bottom up is quick where the rows are in order already, as a queue mostly is.
    """
    width = 1
    while width < count:
        for low in range(0, count, 2 * width):
            merge(rows, keys, low, min(low + width, count), min(low + 2 * width, count), spare)
        width *= 2


def merge(rows: list[int], keys: Sequence[float], low: int, middle: int, high: int, spare: list[int]) -> None:
    """Merge two sorted stretches that lie side by side."""
    if middle >= high or keys[rows[middle - 1]] <= keys[rows[middle]]:
        return
    for i in range(low, middle):
        spare[i] = rows[i]
    left, right, at = low, middle, low
    while left < middle:
        if right < high and keys[rows[right]] < keys[spare[left]]:
            rows[at] = rows[right]
            right += 1
        else:
            rows[at] = spare[left]
            left += 1
        at += 1
