"""What goes into an image is checked before it is built in."""

import sys
from pathlib import Path

import pytest

from hack import HackError, images
from hack.cache import REPOSITORY


def test_every_image_has_a_recipe_and_every_recipe_an_image() -> None:
    containerfiles = {path.parent.name for path in (REPOSITORY / "images").glob("*/Containerfile")}

    assert containerfiles == set(images.RECIPES)


def test_a_pinned_reference_holds_the_digest_and_no_tag() -> None:
    image = images.Image("localhost/inquest/kubectl", "sha256:abc", Path("image.tar"))

    assert image.pinned == "localhost/inquest/kubectl@sha256:abc"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux' own interpreter is an ELF file")
def test_a_program_that_needs_libraries_is_recognised() -> None:
    assert images._needs_libraries(Path("/bin/sh").read_bytes())


def test_an_unknown_image_is_named_in_the_complaint() -> None:
    with pytest.raises(HackError, match="no image is named kubctl"):
        images.build_image("kubctl")
