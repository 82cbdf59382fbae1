"""The metrics page: what one part fails with is missing, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import Metric

from roost.web.metrics import MetricsPage, gauge


class Fails:
    def collect(self) -> Iterator[Metric]:
        yield gauge("roost_half", "Shown before it fails", 1)
        raise RuntimeError("no numbers today")


class Shows:
    def collect(self) -> Iterator[Metric]:
        yield gauge("roost_whole", "Shown", 1)


async def test_a_part_that_fails_leaves_the_others_on_the_page() -> None:
    page = (await MetricsPage("dev", (Fails(), Shows()), "gateway").render()).decode()

    assert "roost_whole 1.0" in page
    assert "roost_half" not in page, "half of what belongs together says what is not so"
