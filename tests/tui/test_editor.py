from tui.editor import MOST, Editor


def typed(editor: Editor, *keys: str) -> list[str]:
    return [editor.press(key, key if len(key) == 1 else None) for key in keys]


def test_typing_and_moving() -> None:
    editor = Editor(":")
    typed(editor, *"abd", "left", "c", "home", "x", "end", "y", "right")
    assert editor.text == "xabcdy"
    typed(editor, "backspace", "home", "delete")
    assert editor.text == "abcd"
    typed(editor, "end", *" e", "ctrl+w")
    assert editor.text == "abcd"
    typed(editor, "ctrl+u")
    assert editor.text == ""
    assert typed(editor, "backspace") == ["cancel"]
    assert typed(editor, "f5") == [""]


def test_its_end() -> None:
    assert typed(Editor(":"), "enter", "escape") == ["done", "cancel"]


def test_completion() -> None:
    editor = Editor(":", "", ["clients  who", "topic sensors/a  one", "topics  all"])
    typed(editor, *"sens")
    assert editor.fitting() == ["topic sensors/a  one"]
    typed(editor, "tab")
    assert editor.text == "topic sensors/a"
    assert typed(Editor(":", "x"), "tab") == [""]


def test_a_pasted_text_is_one_printable_line() -> None:
    editor = Editor(":")
    editor.paste("a\x1b[2J\nb" + "x" * 1_000)
    assert editor.text.startswith("a[2Jb")
    assert len(editor.text) == MOST
