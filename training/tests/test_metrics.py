import numpy as np
import pytest

from training.calibration import metrics


def test_confident_and_always_right_is_calibrated_and_leaves_no_error_to_remove():
    right = np.ones(100)
    assert metrics.calibration_error(np.full(100, 1.0), right) == 0
    assert metrics.errors_removed(np.arange(100.0), right) == 0


def test_the_calibration_error_of_a_constant_is_its_distance_from_the_accuracy():
    right = np.array([1.0, 0.0] * 150)
    assert metrics.calibration_error(np.full(300, 0.9), right) == pytest.approx(0.4)


def test_abstaining_on_the_least_sure_removes_the_errors_that_are_there():
    right = np.array([0.0] * 10 + [1.0] * 90)
    assert metrics.errors_removed(np.arange(100.0), right) == 1
    assert metrics.errors_removed(-np.arange(100.0), right) == 0


def test_the_interval_holds_the_share_and_narrows_with_more_rows():
    low, high = metrics.interval(80, 100)
    assert low < 0.8 < high
    wider = metrics.interval(8, 10)
    assert wider[0] < low and wider[1] > high
    assert metrics.interval(0, 0) == (0.0, 1.0)


def test_a_temperature_is_found_again():
    rng = np.random.default_rng(0)
    logits = [rng.normal(size=4) * 2 for _ in range(4000)]
    labels = [int(rng.choice(4, p=metrics.softmax(row))) for row in logits]
    assert metrics.best_temperature([row * 3 for row in logits], labels) == pytest.approx(3.0, rel=0.1)
