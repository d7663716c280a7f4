"""The colours: sea and sand on a dark ground. Nothing is told by colour alone."""

from textual.theme import Theme

TIDE = Theme(
    name="tide",
    primary="#45b5c4",
    secondary="#2b6c7c",
    accent="#f0c674",
    foreground="#d5e2e6",
    background="#0b1418",
    surface="#0f1b20",
    panel="#16272e",
    success="#7ec98f",
    warning="#e9a94b",
    error="#ef6f6c",
    dark=True,
    variables={
        "text-muted": "#86a0a9",
        "scrollbar": "#2b6c7c",
        "scrollbar-background": "#0f1b20",
        "scrollbar-corner-color": "#0f1b20",
    },
)
