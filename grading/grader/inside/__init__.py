"""What the sandbox sees. Nothing here imports the rest of grading/, and nothing here is secret."""
