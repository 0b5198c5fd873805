"""The Kronecker generator again, slow and independent: random numbers, vertices and edges."""

from __future__ import annotations

from functools import cache

P = 2**31 - 1


X, Y = 107374182, 104480


MASK = 2**64 - 1


def times(a: list[int], b: list[int]) -> list[int]:
    """Multiply two polynomials (lowest first), modulo x**5 = X x**4 + Y."""
    product = [0] * 9
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            product[i + j] = (product[i + j] + x * y) % P
    for power in range(8, 4, -1):
        top = product[power]
        product[power] = 0
        product[power - 1] = (product[power - 1] + X * top) % P
        product[power - 5] = (product[power - 5] + Y * top) % P
    return product[:5]


@cache
def power_of_x(exponent: int) -> tuple[int, ...]:
    result, base = [1, 0, 0, 0, 0], [0, 1, 0, 0, 0]
    while exponent:
        if exponent & 1:
            result = times(result, base)
        base = times(base, base)
        exponent >>= 1
    return tuple(result)


class SlowGenerator:
    """The last five values, oldest first."""

    def __init__(self, values: list[int]) -> None:
        self.values = values

    @classmethod
    def of_seeds(cls, seed1: int, seed2: int) -> SlowGenerator:
        z1, z2 = seed1 % 2**30 + 1, (seed1 // 2**30) % 2**30 + 1
        z3, z4 = seed2 % 2**30 + 1, (seed2 // 2**30) % 2**30 + 1
        z5 = seed2 // 2**60 * 16 + seed1 // 2**60 + 1
        return cls([z5, z4, z3, z2, z1])

    def draw(self) -> int:
        value = (X * self.values[4] + Y * self.values[0]) % P
        self.values = [*self.values[1:], value]
        return value

    def skipped(self, steps: int) -> SlowGenerator:
        later = SlowGenerator(self.values)
        sequence = self.values + [later.draw() for _ in range(4)]
        weights = power_of_x(steps)
        return SlowGenerator(
            [sum(w * z for w, z in zip(weights, sequence[k:], strict=False)) % P for k in range(5)]
        )


def reversed_bits(x: int) -> int:
    return int(f"{x:064b}"[::-1], 2)


def scrambled(vertex: int, scale: int, value0: int, value1: int) -> int:
    vertex = (vertex + value0 + value1) * (value0 | 0x4519840211493211) & MASK
    vertex = reversed_bits(vertex) >> (64 - scale)
    vertex = vertex * (value1 | 0x3050852102C843A5) & MASK
    return reversed_bits(vertex) >> (64 - scale)
