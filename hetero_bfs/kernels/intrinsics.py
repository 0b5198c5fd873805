"""Machine instructions that Numba does not offer: atomics on arrays, and bit counts.

Each atomic returns the value before the update. Ordering is relaxed ("monotonic"): it makes
single updates indivisible, and the end of a parallel region orders everything else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def _atomic(operation: str) -> Callable[..., Any]:
    def typed(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
        if not isinstance(array, types.Array) or not isinstance(array.dtype, types.Integer):
            return None
        signature = array.dtype(array, types.intp, array.dtype)

        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array_type = signature.args[0]
            array_value = context.make_array(array_type)(context, builder, arguments[0])
            pointer = cgutils.get_item_pointer(
                context, builder, array_type, array_value, [arguments[1]], wraparound=False
            )
            return builder.atomic_rmw(operation, pointer, arguments[2], "monotonic")

        return signature, codegen

    typed.__name__ = f"atomic_{operation}"
    return intrinsic(typed)  # type: ignore[no-any-return]


atomic_or = _atomic("or")
"""atomic_or(array, index, value): set bits; returns the old value."""

atomic_add = _atomic("add")
"""atomic_add(array, index, value): add; returns the old value."""


@intrinsic
def trailing_zeros(typing_context: Any, value: Any) -> Any:
    """trailing_zeros(value): zero bits below the lowest set bit of an unsigned integer."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], context.get_constant(types.boolean, True))

    return value(value), codegen


@intrinsic
def population_count(typing_context: Any, value: Any) -> Any:
    """population_count(value): set bits of an unsigned integer."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return value(value), codegen
