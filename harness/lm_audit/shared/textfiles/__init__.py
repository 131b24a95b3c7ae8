"""Text, JSON, JSON Lines, TOML and tables from files of any origin: one behaviour for every reader of the project.

UTF-8 (with or without BOM), UTF-16 with its mark and GB18030 are read, also packed by gzip; everything else is refused
by name. A line ends in LF or CRLF and nowhere else. JSON is strict. Each error is a ``DataError`` that names file and
row. Nothing here knows what a row means. What is written anew takes the place of what was there whole.
"""

from lm_audit.shared.textfiles.encodings import encoding_of
from lm_audit.shared.textfiles.json_text import json_lines, objects_of_lines, parse_json, read_json_object
from lm_audit.shared.textfiles.packed import ending_of
from lm_audit.shared.textfiles.parts import OnDisk, chosen, chosen_files, on_disk
from lm_audit.shared.textfiles.paths import files_in, is_file, is_folder, is_there, readable_file
from lm_audit.shared.textfiles.plain import text_of
from lm_audit.shared.textfiles.replacing import replacing
from lm_audit.shared.textfiles.tables import table_records, table_rows
from lm_audit.shared.textfiles.toml_text import read_toml

__all__ = [
    "OnDisk",
    "chosen",
    "chosen_files",
    "encoding_of",
    "ending_of",
    "files_in",
    "is_file",
    "is_folder",
    "is_there",
    "json_lines",
    "objects_of_lines",
    "on_disk",
    "parse_json",
    "read_json_object",
    "read_toml",
    "readable_file",
    "replacing",
    "table_records",
    "table_rows",
    "text_of",
]
