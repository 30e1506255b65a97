from __future__ import annotations

from xml.etree import ElementTree

from topics.spark.display import Lag
from topics.spark.server import ArchiveProgress, PartitionState


def state(topic: str, head: int, earliest: int, archived: tuple[int, ...] = (), partition: int = 0) -> PartitionState:
    archives = tuple(ArchiveProgress(f"a{seq}", seq) for seq in archived)
    return PartitionState(topic, 1, head, earliest, head - earliest + 1, 0, "log", {}, partition, 2, archives)


LAG = Lag.of([state("orders", 2000, 1, (1500, 1900)), state("orders", 10, 1, (10,), 1), state("a<b", 5, 1)])


def test_the_slowest_archive_counts() -> None:
    assert [(row.archived_seq, row.behind) for row in LAG.rows] == [(1500, 500), (10, 0), (None, None)]


def test_as_text() -> None:
    assert str(LAG).splitlines() == [
        "topic   partition  records  head   archived  behind",
        "orders  0          2,000    2,000  1,500     500",
        "orders  1          10       10     10        0",
        "a<b     0          5        5      -         -",
    ]


def test_in_a_notebook_and_as_a_picture() -> None:
    html = LAG._repr_html_()
    assert "a&lt;b" in html and "orders#1" in html and "500" in html
    assert "http" not in html, "nothing is loaded from anywhere"
    ElementTree.fromstring(html)
    picture = ElementTree.fromstring(LAG.svg())
    widths = [float(bar.attrib["width"]) for bar in picture.iter() if bar.tag.endswith("rect")]
    assert widths[:2] == [240, 60]
    assert "<table>" in Lag(())._repr_html_()
