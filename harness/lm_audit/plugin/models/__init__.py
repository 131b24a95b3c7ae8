"""The models of a run: those of this process, those behind servers, and the devices they lie on."""
