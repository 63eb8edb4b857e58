"""A row that has changed since it was verified is no longer shown as one that passes."""

import pytest

from rosetta import catalog
from rosetta.paths import RESULTS
from rosetta.site import build
from rosetta.verify import conformance, page

KNOWN = catalog.load()


@pytest.mark.parametrize("task", KNOWN.tasks)
def test_every_row_was_verified_as_it_is_today(task):
    report = conformance.read(RESULTS, task)
    passed = {line.full_name for _, line in page.found(KNOWN, task, report) if line.passed}
    rows = {row.full_name for row in KNOWN.rows(task)}
    assert passed == rows == {line.full_name for line in report.rows}, "run_all.py verify proves what has changed"


@pytest.mark.parametrize("task", KNOWN.tasks)
def test_row_that_has_changed_is_stale_on_every_page(tmp_path, task):
    report = conformance.read(RESULTS, task)
    changed, rows = report.rows[0], len(report.rows)
    changed.digest = "0" * 64
    conformance.write(report, tmp_path, task)
    text = page.page(KNOWN, task, tmp_path)
    assert f"**{rows - 1} of {rows} rows pass" in text and " | stale | stale |" in text
    assert f"| stale | the row has changed since it was verified on {changed.verified:%Y-%m-%d}" in text
    badges = build.badges(KNOWN, task, tmp_path)
    assert (badges[changed.name].text, badges[changed.name].badge) == ("stale", "bad")
    assert sum(cell.badge == "good" for cell in badges.values()) == rows - 1
