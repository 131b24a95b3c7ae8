"""For ``pytest -p`` on a stand-in node: another version of torch seems to be installed there."""

import sys
import tempfile
from pathlib import Path

_place = Path(tempfile.mkdtemp(prefix="other-torch-"))
(_place / "torch-0.0.1.dist-info").mkdir()
(_place / "torch-0.0.1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 0.0.1\n")
sys.path.insert(0, str(_place))
