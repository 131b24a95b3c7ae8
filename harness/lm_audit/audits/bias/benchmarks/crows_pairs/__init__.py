"""CrowS-Pairs."""
