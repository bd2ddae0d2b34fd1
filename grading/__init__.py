"""The instructor's side: what makes, checks and grades the week. No student copy holds it."""
