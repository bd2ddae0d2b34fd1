"""nanolm: the course library. Students import it and never edit it."""
