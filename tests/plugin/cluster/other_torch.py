"""For ``pytest -p`` on a stand-in node: another version of torch seems to be installed there.

``LM_AUDIT_TOY_OTHER_TORCH`` names a file for the session's process id: it ends once the node is told to be of no use.
"""

import os
import sys
import tempfile
from pathlib import Path

_place = Path(tempfile.mkdtemp(prefix="other-torch-"))
(_place / "torch-0.0.1.dist-info").mkdir()
(_place / "torch-0.0.1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 0.0.1\n")
sys.path.insert(0, str(_place))
if "LM_AUDIT_TOY_OTHER_TORCH" in os.environ:
    Path(os.environ["LM_AUDIT_TOY_OTHER_TORCH"]).write_text(str(os.getpid()))
