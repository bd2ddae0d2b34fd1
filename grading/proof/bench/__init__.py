"""Ratios that this project claims, each against a peer in the same run: `python -m grading bench`."""
