"""Formulas as MathML, which browsers draw themselves: pages with them need no script and no network."""

from html import escape

from latex2mathml.converter import convert
from nbconvert.filters.markdown_mistune import IPythonRenderer


class MathMLRenderer(IPythonRenderer):
    """Markdown to HTML with formulas as MathML; one that can't be read stands as it was written."""

    def inline_math(self, body):
        """A formula in a line."""
        return _formula(body, "inline")

    def block_math(self, body):
        """A formula of its own."""
        return _formula(body, "block")


def _formula(body, display):
    try:
        return convert(body, display=display)
    except Exception:  # the library raises whatever its parser met
        return f"<code>{escape(body)}</code>"
