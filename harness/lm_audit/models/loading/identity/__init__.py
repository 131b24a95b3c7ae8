"""Which model it is: digests of weights, fingerprints, and what a spec stands for on this machine."""
