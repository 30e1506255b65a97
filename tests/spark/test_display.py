from __future__ import annotations

from pathlib import Path
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
    widths = [bar.attrib["width"] for bar in picture.iter() if bar.tag.endswith("rect")]
    assert widths[:5] == ["100%", "12", "12", "240", "60"]
    words = [text.text for text in picture.iter() if text.tag.endswith("text")]
    assert words[2:6] == ["orders", "2,000, 500 behind", "orders#1", "10, 0 behind"]
    assert "<table>" in Lag(())._repr_html_()


GUIDE = Lag.of(
    [
        state("orders", 2_410_000, 10_001, (2_380_000,)),
        state("orders.eu", 1_210_000, 1, (1_210_000,)),
        state("payments", 1_800_000, 600_001, (1_500_000, 1_790_000)),
        state("payments", 1_640_000, 600_001, (1_600_000, 1_640_000), 1),
        state("clicks", 900_000, 1),
    ]
)
"""What the guide shows."""


def test_the_picture_of_the_guide_is_this_one() -> None:
    picture = Path(__file__).parents[2] / "docs" / "images" / "lag.svg"
    assert picture.read_text() == GUIDE.svg() + "\n", f"{picture.name} is to be what GUIDE.svg() draws"
