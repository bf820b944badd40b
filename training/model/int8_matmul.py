"""Matrix products in the way of int8, so that training can see the effect of rounding."""

import torch
from torch import nn
from torch.nn import functional as F

# The range of a product's inputs, and the ranges of all products by their names in the graph.
Ends = tuple[float, float]
Ranges = dict[str, Ends]

# The largest weight's integer, by default.
TOP = 127
# The largest sum of two neighbours of one sign. Processors without 8-bit dot products add the products of two
# neighbours, with inputs of up to 255, in 16 bits that saturate: 128 x 255 fits.
MAX_PAIR = 128
# Rounding can add 1 to a pair; increasing the scale by this factor each time takes it away again in a few steps.
FINER = 1.004


def input_grid(ends: Ends) -> tuple[float, int]:
    """Returns the step and the zero point of 256 input values between two ends; 0 is one of them."""
    low, high = min(ends[0], 0.0), max(ends[1], 0.0)
    step = (high - low) / 255
    return step, min(max(round(-low / step), 0), 255)


def input_integers(x: torch.Tensor, ends: Ends) -> torch.Tensor:
    """Returns input values as positions on the grid between two ends, 0 to 255."""
    step, zero = input_grid(ends)
    return (x / step).round().add(zero).clamp(0, 255)


def row_integers(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns rows of a table as integers of at most 127, and the scale of each row [rows, 1]."""
    scale = rows.abs().amax(1, keepdim=True).clamp(min=1e-12) / TOP
    return (rows / scale).round_(), scale


def largest_pair(weight: torch.Tensor) -> torch.Tensor:
    """Returns the largest absolute sum of two neighbours of one sign in each row [rows, 1]: 0 and 1, 2 and 3, and so
    on."""
    # The absolute sum of two neighbours of different signs is less than the larger one.
    both = (weight[:, :-1:2] + weight[:, 1::2]).abs().amax(1, keepdim=True)
    return torch.maximum(both, weight.abs().amax(1, keepdim=True))


def weight_integers(weight: torch.Tensor, top: int = TOP) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the weights of a product [outputs, inputs] as integers of at most `top` whose pairs cannot saturate, and
    the scale of each output [outputs, 1]."""
    scale = torch.maximum(weight.abs().amax(1, keepdim=True) / top, largest_pair(weight) / MAX_PAIR).clamp(min=1e-12)
    integers = (weight / scale).round_()
    while (over := largest_pair(integers).squeeze(1) > MAX_PAIR).any():
        scale[over] *= FINER
        integers[over] = (weight[over] / scale[over]).round_()
    return integers, scale


class RoundedWeight(torch.autograd.Function):
    """Rounds weights as in int8, with a scale for each output; passes gradients as if the weights were not rounded."""

    @staticmethod
    def forward(_: object, weight: torch.Tensor) -> torch.Tensor:
        """Returns the weights [outputs, inputs], rounded as `weight_integers` rounds them."""
        integers, scale = weight_integers(weight)
        return integers.mul_(scale)

    @staticmethod
    def backward(_: object, gradient: torch.Tensor) -> torch.Tensor:
        """Returns the gradient unchanged."""
        return gradient


class Int8Linear(nn.Linear):
    """A linear layer that is exported in int8. If `ends`, the range of its inputs, is given, it rounds as int8 will;
    inputs beyond the range get no gradient."""

    ends: Ends | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns x W + b."""
        if self.ends is None:
            return super().forward(x)
        step, zero = input_grid(self.ends)
        inputs = torch.fake_quantize_per_tensor_affine(x.float(), step, zero, 0, 255)
        return F.linear(inputs, RoundedWeight.apply(self.weight), self.bias)
