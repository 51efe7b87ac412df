"""What the documentation says is what the code does."""

import re
from pathlib import Path

from config import reference

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_option_table_is_the_one_of_the_schema():
    assert (
        reference.markdown(reference.options()).strip()
        in (ROOT / "docs" / "configuration.md").read_text()
    )


def test_every_link_to_a_file_leads_somewhere():
    broken = [
        f"{page.name}: {link}"
        for page in PAGES
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text())
        if "://" not in link and not (page.parent / link).exists()
    ]

    assert broken == []


def test_the_changelog_has_an_unreleased_part():
    assert "## Unreleased" in (ROOT / "CHANGELOG.md").read_text()
