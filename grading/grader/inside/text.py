"""Text from anywhere, made fit to be shown."""

TEXT_LIMIT = 1_000


def clean(text, limit=TEXT_LIMIT):
    """Text cut to a limit, in printable ASCII: no terminal escapes, no line breaks."""
    text = str(text)
    text = text if len(text) <= limit else text[:limit] + " ..."
    if text.isascii() and text.isprintable():
        return text
    return "".join(letter if " " <= letter <= "~" else ascii(letter)[1:-1] for letter in text)
