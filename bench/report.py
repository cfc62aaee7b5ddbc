"""Medians, ratios and targets: one table for people, one JSON object for programs."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
from dataclasses import dataclass, field


@dataclass
class Row:
    """One figure: its samples, what it is measured against, and the target it has."""

    name: str
    samples: list[float]
    unit: str
    against: list[float] | None = None
    limit: float | None = None
    limit_of: str = "value"
    at_least: bool = False

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def ratio(self) -> float | None:
        """Median of the pairwise ratios: what a drifting machine disturbs least."""
        if not self.against:
            return None
        pairs = zip(self.samples, self.against, strict=False)
        return statistics.median(a / b for a, b in pairs)

    @property
    def met(self) -> bool | None:
        if self.limit is None:
            return None
        value = self.ratio if self.limit_of == "ratio" else self.median
        assert value is not None
        return value >= self.limit if self.at_least else value <= self.limit

    def as_dict(self) -> dict[str, object]:
        return {
            "name": self.name,
            "unit": self.unit,
            "median": self.median,
            "min": min(self.samples),
            "max": max(self.samples),
            "n": len(self.samples),
            "against_median": statistics.median(self.against) if self.against else None,
            "ratio": self.ratio,
            "target": self.limit,
            "target_of": self.limit_of if self.limit is not None else None,
            "met": self.met,
        }


@dataclass
class Report:
    """All rows of one benchmark."""

    title: str
    rows: list[Row] = field(default_factory=list)

    def show(self, as_json: bool) -> None:
        if as_json:
            host = {"kernel": platform.release(), "cpus": os.cpu_count(), "load": os.getloadavg()}
            rows = [row.as_dict() for row in self.rows]
            print(json.dumps({"title": self.title, "host": host, "rows": rows}, indent=2))
            return
        print(f"{self.title} (medians; load {os.getloadavg()[0]:.1f})")
        for row in self.rows:
            line = f"  {row.name:<52} {row.median:9.2f} {row.unit:<5}"
            line += f" [{min(row.samples):.2f} … {max(row.samples):.2f}]"
            if row.against:
                line += f"  raw {statistics.median(row.against):.2f}  ratio {row.ratio:.2f}"
            if row.limit is not None:
                sign = "≥" if row.at_least else "≤"
                what = "ratio " if row.limit_of == "ratio" else ""
                line += f"  target {what}{sign} {row.limit:g}: {'met' if row.met else 'MISSED'}"
            print(line)


def arguments(description: str, **defaults: int) -> argparse.Namespace:
    """The options that every benchmark has, and some whole numbers of its own."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--boundary", action="append", help="only this one (may be repeated)")
    for name, value in defaults.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    return parser.parse_args()
