"""The answer of a recipe as text and as HTML."""

import html
from dataclasses import fields

from nanolm.recipe.swaps import LABELS, Recipe

LIGHTS = {"good": ("#009E73", "ok"), "watch": ("#E69F00", "watch"), "bad": ("#D55E00", "breaks")}


def part_rows(answer):
    """(part, parameters, share of the model) for a table; a layer's parts are multiplied by L."""
    parts, L = answer.parts, answer.cfg.L
    sizes = {
        "embedding": parts.embedding,
        "learned positions": parts.positions,
        f"attention, {L} layers": L * parts.attention,
        f"FFN, {L} layers": L * parts.ffn,
        "norms": L * parts.norms + parts.final_norm,
        "head" if parts.head else "head (tied)": parts.head,
    }
    return [(name, size, size / parts.total) for name, size in sizes.items()]


def swaps(recipe):
    """What the recipe is made of, in words."""
    words = []
    for field in fields(Recipe):
        if field.name != "g":
            word = LABELS[field.name][0 if getattr(recipe, field.name) else 1]
            words.append(f"{word} with g = {recipe.g}" if field.name == "gqa" and recipe.gqa else word)
    return ", ".join(words)


def text(answer, arithmetic=False):
    """The answer as lines of plain text."""
    lines = [swaps(answer.recipe), f"numbers by {answer.implementation}", ""]
    for card in answer.cards:
        lines.append(f"{card.title:<26}{card.number:>22}   {card.note}")
        if arithmetic:
            lines += [f"    {left:<76}{right:>20}".rstrip() for left, right in card.arithmetic]
    if answer.parts:
        lines += ["", *(f"  {name:<24}{size:>18,}{share:>8.1%}" for name, size, share in part_rows(answer))]
    return "\n".join(lines)


def page(answer):
    """The answer as HTML; each card's arithmetic opens on a click."""
    return page_of_cards(answer, folded=True) + parts_page(answer)


def page_of_cards(answer, folded=False):
    """The cards as HTML; with `folded` each has its arithmetic, closed at first."""
    cards = "".join(card_page(card, folded) for card in answer.cards)
    row = "display: flex; flex-wrap: wrap; align-items: flex-start; gap: 10px; margin: 8px 0"
    return (
        f'<div style="font: 16px/1.45 sans-serif"><div>{html.escape(swaps(answer.recipe))}</div>'
        f'<div style="{row}">{cards}</div></div>'
    )


def card_page(card, folded=False):
    """One card as HTML."""
    colour, word = LIGHTS.get(card.light, ("#222222", ""))
    name = "".join(letter if letter.isalnum() else "-" for letter in card.title.split(" at ")[0].lower())
    if card.title.startswith("KV cache at"):
        name = "kv-cache-at-context"
    badge = f'<span style="color: {colour}; font-weight: bold; float: right">{word}</span>' if word else ""
    opened = ""
    if folded and card.arithmetic:
        opened = f"<details><summary>arithmetic</summary>{arithmetic_page(card)}</details>"
    return (
        f'<div class="card-{name}" style="border: 1px solid #bbb; border-left: 6px solid {colour}; padding: 8px 12px; '
        f'min-width: 215px; max-width: 520px; flex: 1 1 215px">{badge}<div>{html.escape(card.title)}</div>'
        f'<div class="number" style="font-size: 24px; font-weight: bold">{html.escape(card.number)}</div>'
        f"<div>{html.escape(card.note)}</div>{opened}</div>"
    )


def arithmetic_page(card):
    """A card's arithmetic as an HTML table."""
    rows = "".join(
        f'<tr><td style="text-align: left">{html.escape(left)}</td>'
        f'<td style="text-align: right; font-weight: bold">{html.escape(right)}</td></tr>'
        for left, right in card.arithmetic
    )
    return f'<table class="arithmetic" style="font: 15px/1.4 sans-serif; border-spacing: 12px 0">{rows}</table>'


def parts_page(answer):
    """Parameters by part as an HTML table with bars; nothing where they are not known."""
    if not answer.parts:
        return ""
    rows = "".join(
        f'<tr><td style="text-align: left">{html.escape(name)}</td><td style="text-align: right">{size:,}</td>'
        f'<td style="text-align: right">{share:.1%}</td><td style="min-width: 260px"><div style="background: #0072B2; '
        f'height: 14px; width: {2.5 * 100 * share:.0f}px"></div></td></tr>'
        for name, size, share in part_rows(answer)
    )
    look = "font: 16px/1.5 sans-serif; border-spacing: 12px 0"
    return f'<table class="parts" style="{look}">{rows}</table>'
