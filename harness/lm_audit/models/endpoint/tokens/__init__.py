"""How the tokens of a served model are counted: by its own route, or by a stand-in that says so."""
