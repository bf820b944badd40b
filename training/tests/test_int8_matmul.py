import pytest
import torch

from training.model.int8_matmul import MAX_PAIR, Int8Linear, RoundedWeight, largest_pair, row_integers, weight_integers


def spread(kind):
    """Returns weights of 64 outputs and 97 inputs, of which the last has no neighbour."""
    generator = torch.Generator().manual_seed(5)
    normal = torch.randn(64, 97, generator=generator)
    return {
        "normal": normal,
        "heavy": normal**3,
        "one sign": normal.abs(),
        "minus": -normal.abs(),
        "nothing": torch.zeros(64, 97),
    }[kind]


def saturated(integers):
    """Whether any pair of products with inputs of 255 is beyond 16 bits."""
    products = 255 * torch.nn.functional.pad(integers, (0, integers.shape[1] % 2)).unflatten(1, (-1, 2))
    return bool(((products.clamp(min=0).sum(2) > 32767) | (products.clamp(max=0).sum(2) < -32768)).any())


@pytest.mark.parametrize("kind", ["normal", "heavy", "one sign", "minus", "nothing"])
def test_no_pair_of_weights_saturates_and_no_weight_is_off_by_more_than_half_a_step(kind):
    weight = spread(kind)
    integers, scale = weight_integers(weight)
    assert integers.abs().max() <= 127 and largest_pair(integers).max() <= MAX_PAIR
    assert not saturated(integers)
    assert ((integers * scale - weight).abs() <= scale * 0.5001).all()


def test_rows_that_need_no_room_keep_the_finest_grid():
    weight = torch.tensor([[1.0, -1.0, 0.5, -0.25], [1.0, 1.0, 0.5, 0.25]])
    integers, scale = weight_integers(weight)
    assert integers.tolist() == [[127, -127, 64, -32], [64, 64, 32, 16]]
    assert torch.allclose(scale.squeeze(1), torch.tensor([1 / 127, 1 / 64]))
    assert saturated(row_integers(weight)[0])


def test_training_sees_the_same_integers_and_gets_all_gradients():
    layer = Int8Linear(97, 64)
    layer.weight.data = spread("one sign")
    rounded = RoundedWeight.apply(layer.weight)
    integers, scale = weight_integers(layer.weight.detach())
    assert torch.equal(rounded, integers * scale)
    rounded.sum().backward()
    assert torch.equal(layer.weight.grad, torch.ones(64, 97))
