from itertools import islice

import pytest

from training.golden import requests


@pytest.fixture(scope="session", autouse=True)
def few():
    """Of what commands draw by the thousand, tests need some: phrases to be like, groups for calibration, reference requests of the folders that are written."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("training.likeness.PHRASES_EACH", 200)
        patch.setattr("training.data.ASKED_GROUPS", 200)
        patch.setattr("training.export.requests", lambda: islice(requests(), 6))
        yield
