from pathlib import Path

import pytest

from bench.harness.selection import found, labelled_tree


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Give a checkout with nothing in it but a package."""
    package = tmp_path / "tree" / "gateway"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    return tmp_path / "tree"


def test_a_tree_has_its_label_or_the_name_of_its_folder(tree: Path) -> None:
    assert labelled_tree(f"before={tree}") == ("before", tree)
    assert labelled_tree(str(tree)) == ("tree", tree)


def test_a_folder_without_a_gateway_is_no_tree(tree: Path) -> None:
    with pytest.raises(ValueError, match="has no folder gateway"):
        labelled_tree(str(tree / "gateway"))


def test_of_each_tree_there_are_the_builds_that_are_asked_for(tree: Path) -> None:
    brokers = found(["tidegate"], "tidegate --port {port}", {"before": tree})
    assert [broker.name for broker in brokers] == ["tidegate", "before"]
    folder = Path(brokers[1].environment["PYTHONPATH"])
    assert (folder / "gateway" / "__init__.py").exists()
    assert folder != tree
