"""Whether the published order of options or rows is likelier than others."""
