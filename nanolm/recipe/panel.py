"""The recipe panel in a notebook: checkboxes over the numbers of swaps.py, and its pictures.

    panel(implementation)

Where widgets don't run (a page, a slide, a print) the same output shows the two corners as tables.
"""

import html

import ipywidgets
from IPython.display import display

from nanolm.classroom.style import COLOURS, pictures
from nanolm.recipe import deep_stack, show, swaps

CONTEXTS = [2_048, 8_192, 32_768, 131_072]
CORNERS = {
    "everything off": swaps.VANILLA,
    "Llama style": swaps.LLAMA_STYLE,
    "everything on": swaps.EVERYTHING,
}


class Panel:
    """Checkboxes, a shape and a context; the cards and the table follow. `answer` is what is shown now."""

    def __init__(self, implementation, base="7b-class", start=swaps.LLAMA_STYLE, S=32_768):
        self.implementation = implementation
        self.answer = None
        self._quiet = False  # several controls change at once: draw once
        self.base = ipywidgets.Dropdown(options=list(swaps.BASES), value=base, description="shape")
        self.S = ipywidgets.SelectionSlider(
            options=[(f"{S:,}", S) for S in CONTEXTS], value=S, description="S", continuous_update=False
        )
        self.toggles = {
            name: ipywidgets.Checkbox(value=getattr(start, name), description=on, indent=False)
            for name, (on, off) in swaps.LABELS.items()
        }
        self.g = ipywidgets.Dropdown(description="g", layout={"width": "160px"})
        self._offer_g(start.g)
        self.corners = [ipywidgets.Button(description=name) for name in CORNERS]
        self.cards = ipywidgets.HTML()
        self.questions = ipywidgets.HBox(layout={"flex_flow": "row wrap"})
        self.arithmetic = ipywidgets.HTML()
        self.parts = ipywidgets.HTML()
        self.asked = None  # the title of the card whose arithmetic is open
        for control in (*self.toggles.values(), self.g, self.S):
            control.observe(self._draw, names="value")
        self.base.observe(self._take_shape, names="value")
        for button in self.corners:
            button.on_click(lambda button: self.set(CORNERS[button.description]))
        self._make_questions()
        self._draw()

    @property
    def recipe(self):
        """The toggles as they stand."""
        chosen = {name: control.value for name, control in self.toggles.items()}
        return swaps.Recipe(**chosen, g=self.g.value)

    def set(self, chosen):
        """Set all toggles at once; g stays where the shape does not know it."""
        self._quiet = True
        for name, control in self.toggles.items():
            control.value = getattr(chosen, name)
        if chosen.g in self.g.options:
            self.g.value = chosen.g
        self._quiet = False
        self._draw()

    def widget(self):
        """All controls and outputs in one box."""
        rows = ipywidgets.GridBox(
            list(self.toggles.values()), layout={"grid_template_columns": "repeat(3, 210px)", "grid_gap": "2px"}
        )
        box = ipywidgets.VBox(
            [
                ipywidgets.HBox([self.base, self.S, self.g]),
                ipywidgets.HBox(self.corners),
                rows,
                self.cards,
                self.questions,
                self.arithmetic,
                self.parts,
            ]
        )
        box.add_class("nanolm-recipe-panel")
        return box

    def _offer_g(self, wanted):
        choices = swaps.choices_of_g(swaps.BASES[self.base.value].N) or [1]
        self.g.options = choices
        self.g.value = wanted if wanted in choices else choices[0]

    def _take_shape(self, _):
        """Another shape: the checkboxes show what that model has."""
        self._quiet = True
        chosen = swaps.recipe_of(swaps.BASES[self.base.value])
        self._offer_g(chosen.g)
        self._quiet = False
        self.set(chosen)

    def _draw(self, _=None):
        if self._quiet:
            return
        question = (self.recipe, swaps.BASES[self.base.value], self.S.value, self.implementation)
        self._put(swaps.ask(*question, measure=False))  # at once; the measurement takes a moment the first time
        self._put(swaps.ask(*question))

    def _put(self, answer):
        self.answer = answer
        self.cards.value = show.page_of_cards(answer)
        self.parts.value = show.parts_page(answer)
        self._show_arithmetic()

    def _make_questions(self):
        titles = ("Parameters", "KV cache per token", "KV cache at S", "Stability at depth", "Usable context")
        for number, title in enumerate(titles):
            button = ipywidgets.ToggleButton(description=title, tooltip="its arithmetic", layout={"width": "180px"})
            button.observe(lambda change, number=number: self._ask(number, change["new"]), names="value")
            self.questions.children += (button,)
        self.questions.children = (ipywidgets.Label("arithmetic of"), *self.questions.children)

    def _ask(self, number, opened):
        if opened:
            for other, button in enumerate(self.questions.children[1:]):
                if other != number:
                    button.value = False
        self.asked = number if opened else None if self.asked == number else self.asked
        self._show_arithmetic()

    def _show_arithmetic(self):
        card = self.answer.cards[self.asked] if self.asked is not None else None
        self.arithmetic.value = show.arithmetic_page(card) if card else ""


def panel(implementation, **start):
    """Show the panel and return it; a page without widgets shows `corners_page` instead."""
    made = Panel(implementation, **start)
    bundle = made.widget()._repr_mimebundle_()
    bundle = bundle[0] if isinstance(bundle, tuple) else bundle
    display({**bundle, "text/html": corners_page(implementation)}, raw=True)
    return made


def corners_page(implementation, base="7b-class", S=32_768):
    """The two corners of a shape as HTML: everything off, and everything on, with their arithmetic folded."""
    pages = []
    for name in ("everything off", "Llama style"):
        answer = swaps.ask(CORNERS[name], swaps.BASES[base], S, implementation)
        pages.append(f"<h4>{html.escape(name)}, shape {html.escape(base)}</h4>{show.page(answer)}")
    return "".join(pages)


def corner_pictures(answers):
    """Four pictures of named answers, {name: Answer}: parameters by part, cache, stability by depth, context."""
    figure, axes = pictures(columns=2, rows=2, width=14, height=4.4)
    _draw_parts(axes[0][0], answers)
    _draw_cache(axes[0][1], answers)
    _draw_depth(axes[1][0], answers)
    _draw_losses(axes[1][1], answers)
    return figure


def _draw_parts(axes, answers):
    shades = ["blue", "yellow", "orange", "sky", "black", "grey"]
    for row, answer in enumerate(answers.values()):
        left = 0
        for (name, size, _), shade in zip(show.part_rows(answer), shades, strict=True):
            axes.barh(row, size / 1e9, left=left, color=COLOURS[shade], height=0.6)
            word = name.split(",")[0]
            if size / answer.parts.total > 0.15:
                axes.text(left + size / 2e9, row, word, ha="center", va="center", color="white", fontsize=16)
            elif word == "embedding":  # too narrow for its name
                axes.text(left, row - 0.33, word, va="bottom", color=COLOURS[shade], fontsize=15)
            left += size / 1e9
        axes.text(left + 0.1, row, f"{left:.2f}B", va="center", fontweight="bold", fontsize=16)
    axes.set_yticks(range(len(answers)), answers)
    axes.set_xlim(0, 1.2 * max(answer.total for answer in answers.values()) / 1e9)
    axes.set_xlabel("parameters, billions")
    axes.invert_yaxis()


def _draw_cache(axes, answers):
    for (name, answer), colour in zip(answers.items(), ("orange", "blue", "green"), strict=False):
        wall = answer.cfg.T_max if answer.cfg.positions == "learned" else max(CONTEXTS)
        S = [0, *(S for S in CONTEXTS if S <= wall)]
        axes.plot(S, [answer.cache_per_token * s / 1e9 for s in S], color=COLOURS[colour], marker="o", linewidth=3)
        walled = wall < max(CONTEXTS)
        axes.annotate(
            f"{name}: a wall" if walled else name, (S[-1], answer.cache_per_token * S[-1] / 1e9),
            xytext=(0, 36 if walled else 12), textcoords="offset points", ha="left" if walled else "right",
            color=COLOURS[colour], fontweight="bold", fontsize=15,
        )  # fmt: skip
    axes.set_xlabel("context S, tokens")
    axes.set_xticks(CONTEXTS[1:], [f"{S // 1024}k" for S in CONTEXTS[1:]])
    axes.set_ylabel("KV cache, GB")


def _draw_depth(axes, answers):
    layers = range(1, deep_stack.L + 1)
    for (name, answer), colour in zip(answers.items(), ("orange", "blue", "green"), strict=False):
        axes.semilogy(layers, answer.stack.gradients, color=COLOURS[colour], label=name, linewidth=3)
    axes.set_xlabel("layer, 1 to L")
    axes.set_ylabel("gradient at the start")
    axes.set_yticks([0.01, 0.03, 0.1, 0.3], ["0.01", "0.03", "0.1", "0.3"])
    axes.minorticks_off()
    axes.legend(fontsize=15, frameon=False)


def _draw_losses(axes, answers):
    for row, (name, colour) in enumerate(zip(answers, ("orange", "blue", "green"), strict=False)):
        stack = answers[name].stack
        axes.barh(row, stack.loss, color=COLOURS[colour], height=0.6)
        axes.text(stack.loss - 0.1, row, f"{stack.loss:.2f}", va="center", ha="right", color="white", fontsize=16)
    axes.axvline(deep_stack.Measured.guess, color=COLOURS["black"], linestyle="--")
    axes.text(deep_stack.Measured.guess, -0.5, "blind guess", ha="center", fontsize=15)
    axes.set_yticks(range(len(answers)), answers)
    axes.set_xlim(0, 4)
    axes.set_xlabel(f"loss after {deep_stack.STEPS} steps without warm-up, L = {deep_stack.L}")
    axes.invert_yaxis()
