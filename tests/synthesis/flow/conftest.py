"""The fixture that runs a test on each kind of rows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.synthesis.flow.benches import Bench, DatabaseBench, MemoryBench


@pytest.fixture(params=["memory", "memory, exclusive", "database"])
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    if request.param == "database":
        request.getfixturevalue("db")
        monkeypatch = request.getfixturevalue("monkeypatch")
        monkeypatch.setattr("synthesis.services.conversions.dispatch_soon", lambda _pool: None)
        yield DatabaseBench()
    else:
        yield MemoryBench(exclusive="exclusive" in request.param)
