"""The exercises: every file in this folder is yours to edit."""
