"""Text for people."""

from __future__ import annotations

from html import escape


class Text(str):
    """A text of several lines, which prompts and notebooks show as it is printed."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        # Sentences are long lines.
        return f'<pre style="white-space: pre-wrap">{escape(self)}</pre>'
