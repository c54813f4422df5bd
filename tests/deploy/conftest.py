"""Fixtures for what is deployed: the chart with each set of values that is kept for tests."""

import chart
import pytest


@pytest.fixture(scope="session", params=chart.VALUES, ids=lambda values: values.stem.removesuffix("-values"))
def values(request):
    return request.param


@pytest.fixture(scope="session")
def objects(values):
    return chart.render(values)
