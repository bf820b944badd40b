from itertools import islice

import pytest

from training.folder.golden import requests


@pytest.fixture(scope="session", autouse=True)
def few():
    """Reduces the numbers of phrases, of groups for calibration and of reference requests, of which the commands draw
    thousands and tests need only a few."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("training.similarity.likeness.PHRASES_EACH", 200)
        patch.setattr("training.commands.data.ASKED_GROUPS", 200)
        patch.setattr("training.folder.writer.requests", lambda: islice(requests(), 6))
        yield
