"""Text for people."""

from __future__ import annotations

from html import escape


class Text(str):
    """A text of several lines, which prompts and notebooks show as it is printed."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        # Sentences are long lines. Pages that a notebook is exported to may style <pre> otherwise, and columns only stay
        # aligned where every character is as wide as the next.
        style = "white-space: pre-wrap; font-family: ui-monospace, Menlo, Consolas, monospace"
        return f'<pre style="{style}">{escape(self)}</pre>'
