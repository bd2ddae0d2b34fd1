"""One thing to change and watch: controls over a picture.

Where widgets don't run (a page, a slide, a print) the same output shows the first picture: Jupyter's
output holds both, and each reader takes what it can show.
"""

import base64
import io

import ipywidgets
from IPython.display import display

LABEL_WIDTH = {"description_width": "initial"}


def slider(label, values, start=None):
    """A slider over the given values, labelled."""
    return ipywidgets.SelectionSlider(
        description=label, options=list(values), value=values[0] if start is None else start,
        continuous_update=False, style=LABEL_WIDTH, layout={"width": "520px"},
    )  # fmt: skip


def choice(label, options, start=None):
    """Buttons, one for each option; `options` are texts, or (text, value) pairs."""
    return ipywidgets.ToggleButtons(
        description=label, options=options, style=LABEL_WIDTH, **({} if start is None else {"value": start})
    )


def watch(draw, **controls):
    """Show the controls over the picture that `draw` makes of their values, and redraw at every change.

    `draw` takes the controls' values under the names given here and returns a figure. Returns the
    widget: `.children[-1]` is the picture.

        watch(lambda S: cache_picture(S), S=slider("S", [1024, 2048]))
    """
    picture = ipywidgets.Image(format="png", layout={"max_width": "100%", "object_fit": "contain"})

    def redraw(_=None):
        picture.value = _png(draw(**{name: control.value for name, control in controls.items()}))

    for control in controls.values():
        control.observe(redraw, names="value")
    redraw()
    box = ipywidgets.VBox([*controls.values(), picture])
    bundle = box._repr_mimebundle_()
    bundle = bundle[0] if isinstance(bundle, tuple) else bundle
    display({**bundle, "image/png": base64.b64encode(picture.value).decode("ascii")}, raw=True)
    return box


def _png(figure):
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=figure.dpi)
    return buffer.getvalue()
