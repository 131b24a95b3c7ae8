"""Makes docs/images/first-screen.png: the first screen of a real run's page, as the README shows it.

    pytest evals -m "bias or leakage" --model smollm2 \\
        -k "(general_en and (memorisation or option_order)) or (preference_grid and en) or (bias and control)"
    python docs/images/first_screen.py reports/RUN

Needs Chromium. The page is rebuilt from the run store first, so that it is today's page.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
from pathlib import Path

from lm_audit.report import write_reports

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
LARGEST = 200_000
"""Bytes of the picture at most: it travels with every clone."""


def main() -> None:
    """Rebuild the page and take its picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="the folder of a run")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("first-screen.png"))
    parser.add_argument("--size", default="1280,900", help="width and height in pixels")
    options = parser.parse_args()
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise SystemExit(f"no browser: none of {', '.join(BROWSERS)} is on the PATH")
    page = write_reports(options.run)
    flags = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={options.size}")
    with tempfile.TemporaryDirectory() as folder:
        picture = Path(folder) / "screen.png"
        command = [browser, *flags, f"--screenshot={picture}", page.as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        if picture.stat().st_size > LARGEST:
            raise SystemExit(
                f"the picture has {picture.stat().st_size:,} bytes, {LARGEST:,} at most; make --size smaller"
            )
        shutil.copyfile(picture, options.out)
    print(options.out)


if __name__ == "__main__":
    main()
