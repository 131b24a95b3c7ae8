"""Tests of a change that deal out anew what two runs hold: runs within clusters, changes among groups."""
