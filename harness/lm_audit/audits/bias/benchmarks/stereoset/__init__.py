"""StereoSet."""
