# SPDX-License-Identifier: GPL-2.0
"""What rand() of the GNU C library gives, for programs of others that never call srand()."""

import functools


@functools.cache
def rand(skip: int, count: int) -> tuple[int, ...]:
    """Its numbers after so many calls: r(n) = r(n - 3) + r(n - 31), skipped by powers."""
    def times(a: list[int], b: list[int]) -> list[int]:
        product = [0] * 61
        for i, x in enumerate(a):
            for j, y in enumerate(b):
                product[i + j] += x * y
        for i in range(60, 30, -1):                 # x^31 is x^28 + 1
            product[i - 3] += product[i]
            product[i - 31] += product[i]
        return [x % (1 << 32) for x in product[:31]]

    start = [1]
    while len(start) < 31:
        start.append(16807 * start[-1] % 0x7FFFFFFF)
    start = [*start[3:], *start[:3]]                # three are taken over before the sum begins
    state = []
    for n in range(344 + skip - 3 - 31, 344 + skip - 3):
        power, square = [1] + [0] * 30, [0, 1] + [0] * 29
        while n:
            power = times(power, square) if n & 1 else power
            square = times(square, square)
            n >>= 1
        state.append(sum(a * b for a, b in zip(power, start, strict=True)) % (1 << 32))
    for _ in range(count):
        state.append((state[-3] + state[-31]) % (1 << 32))
    return tuple(x >> 1 for x in state[31:])
