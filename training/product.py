"""Products with weights as int8 computes them, so that training can see what rounding does."""
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

# The largest weight's integer, by default.
TOP = 127


def input_grid(ends: tuple[float, float]) -> tuple[float, int]:
    """The step and the zero point of 256 input values between two ends; 0 is one of them."""
    low, high = min(ends[0], 0.0), max(ends[1], 0.0)
    step = (high - low) / 255
    return step, min(max(round(-low / step), 0), 255)


def input_integers(x: torch.Tensor, ends: tuple[float, float]) -> torch.Tensor:
    """Input values as places on the grid between two ends, 0 to 255."""
    step, zero = input_grid(ends)
    return (x / step).round().add(zero).clamp(0, 255)


def weight_integers(weight: torch.Tensor, top: int = TOP) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows as integers of at most `top`, and the scale of each row [rows, 1].

    Of two neighbours, inputs 2j and 2j + 1, neither the positive ones nor the negative ones add up to more than 128: processors without VNNI add the products of
    each pair with inputs of up to 255 in 16 bits, which then cannot saturate.
    """
    pairs = F.pad(weight, (0, weight.shape[1] % 2)).unflatten(1, (-1, 2))
    largest = torch.maximum(pairs.clamp(min=0).sum(2).amax(1), pairs.clamp(max=0).sum(2).neg().amax(1))
    # Rounding adds at most 1 to a pair.
    scale = torch.maximum(largest / TOP, weight.abs().amax(1) / top).unsqueeze(1).clamp(min=1e-12)
    return (weight / scale).round_(), scale


def row_integers(weight: torch.Tensor, top: int = TOP) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows that are looked up, not multiplied, as integers of at most `top`, and the scale of each row [rows, 1]."""
    scale = weight.abs().amax(1, keepdim=True).clamp(min=1e-12) / top
    return (weight / scale).round_(), scale


class RoundedWeight(torch.autograd.Function):
    """Weights as int8 has them, a scale for each output; gradients as if they were not rounded."""

    @staticmethod
    def forward(_: Any, weight: torch.Tensor) -> torch.Tensor:
        """The weights [outputs, inputs], each row rounded to multiples of its scale."""
        integers, scale = weight_integers(weight)
        return integers.mul_(scale)

    @staticmethod
    def backward(_: Any, gradient: torch.Tensor) -> torch.Tensor:
        """The gradient as it comes."""
        return gradient


class Product(nn.Linear):
    """A linear layer that is exported in int8. Where `ends` are given, the range of its inputs, it rounds as int8 will; what is beyond them gets no gradient."""

    ends: tuple[float, float] | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x W + b."""
        if self.ends is None:
            return super().forward(x)
        step, zero = input_grid(self.ends)
        inputs = torch.fake_quantize_per_tensor_affine(x.float(), step, zero, 0, 255)
        return F.linear(inputs, RoundedWeight.apply(self.weight), self.bias)
