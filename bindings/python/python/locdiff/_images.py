"""Images in the forms that people have them in."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Union

from ._errors import ImageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image as PillowImage

    #: A path, the bytes of a file, a Pillow image, or an array of 8-bit pixels [height, width, 3] (also 4 or 1).
    Image = Union[str, os.PathLike[str], bytes, bytearray, memoryview, PillowImage, NDArray[np.uint8]]

#: Name, path, bytes, width and height of pixels: what the native module takes.
Given = tuple[Union[str, None], Union[str, None], Union[bytes, None], Union[tuple[int, int], None]]


def is_one(images: Any) -> bool:
    """Whether this is one image rather than several."""
    if isinstance(images, (str, bytes, bytearray, memoryview, os.PathLike)):
        return True
    return is_array(images) or is_pillow(images)


def is_array(image: Any) -> bool:
    return hasattr(image, "__array_interface__") and hasattr(image, "dtype")


def is_pillow(image: Any) -> bool:
    return hasattr(image, "getbands") and hasattr(image, "tobytes")


def given(image: Any, name: str | None = None) -> Given:
    """An image for the native module."""
    if isinstance(image, (str, os.PathLike)):
        return (name, os.fspath(image), None, None)
    if isinstance(image, (bytes, bytearray, memoryview)):
        return (name, None, bytes(image), None)
    if is_array(image):
        return pixels_of_array(image, name)
    if is_pillow(image):
        return pixels_of_pillow(image, name)
    kind = f"{type(image).__module__}.{type(image).__qualname__}"
    raise ImageError(f"{kind} is not an image: give a path, bytes, a PIL.Image or an array of 8-bit pixels")


def all_given(images: Sequence[Any], names: Sequence[str] | None = None) -> list[Given]:
    if names is None:
        return [given(image) for image in images]
    if len(names) != len(images):
        raise ImageError(f"{len(names)} names for {len(images)} images")
    return [given(image, name) for image, name in zip(images, names)]


def pixels_of_pillow(image: Any, name: str | None) -> Given:
    """Upright, and over white where transparent, as files are read."""
    from PIL import Image as pillow
    from PIL import ImageOps

    upright = ImageOps.exif_transpose(image)
    if upright.mode in ("RGBA", "LA", "PA") or "transparency" in upright.info:
        upright = upright.convert("RGBA")
        white = pillow.new("RGBA", upright.size, (255, 255, 255, 255))
        upright = pillow.alpha_composite(white, upright)
    rgb = upright.convert("RGB")
    return (name, None, rgb.tobytes(), (rgb.width, rgb.height))


def pixels_of_array(array: Any, name: str | None) -> Given:
    if str(array.dtype) != "uint8":
        raise ImageError(f"an array of {array.dtype} is not an image: use uint8, from 0 to 255")
    shape: tuple[int, ...] = tuple(array.shape)
    if len(shape) == 2:
        array = array.reshape(*shape, 1).repeat(3, axis=2)
    elif len(shape) == 3 and shape[2] == 1:
        array = array.repeat(3, axis=2)
    elif len(shape) == 3 and shape[2] == 4:
        alpha = array[:, :, 3:].astype("uint32")
        over = (array[:, :, :3].astype("uint32") * alpha + 255 * (255 - alpha) + 127) // 255
        array = over.astype("uint8")
    elif len(shape) != 3 or shape[2] != 3:
        raise ImageError(f"an array of shape {list(shape)} is not an image: use [height, width, 3]")
    return (name, None, array.tobytes(), (shape[1], shape[0]))
