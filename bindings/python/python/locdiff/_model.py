"""Models, asked about images."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, overload

from . import _native
from ._answer import Answer
from ._areas import Area, area_text
from ._errors import Error, OptionError
from ._images import all_given, given, is_one
from ._packages import numpy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ._images import Image


class ArrowStream(Protocol):
    """A table of any library: pyarrow, pandas, polars, DuckDB and others have this method."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class Table:
    """A table of answers. ``pyarrow.table(table)``, ``polars.DataFrame(table)`` and others take it without a copy."""

    def __init__(self, native: _native.Table) -> None:
        self._native = native

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return self._native.num_rows

    @property
    def num_rows(self) -> int:
        return self._native.num_rows

    @property
    def column_names(self) -> list[str]:
        return self._native.column_names

    def __repr__(self) -> str:
        return f"<locdiff.Table: {self.num_rows} rows of {', '.join(self.column_names)}>"


class Model:
    """A model that was opened. Several threads may use it at once; the interpreter's lock is released meanwhile."""

    def __init__(self, native: _native.Model, recipe: tuple[Any, ...]) -> None:
        self._native = native
        #: How to open it again in another process.
        self._recipe = recipe

    @property
    def name(self) -> str:
        return str(self.describe()["name"])

    @property
    def version(self) -> str:
        """Changes with the weights and whatever else changes answers."""
        return str(self.describe()["version"])

    @property
    def calibrated(self) -> bool:
        """Whether masses are probabilities. If not, they are scores."""
        return bool(self.describe()["calibrated"])

    def describe(self) -> dict[str, Any]:
        """What the model is, and how it is asked."""
        described: dict[str, Any] = json.loads(self._native.describe())
        return described

    def with_options(self, **options: Any) -> Model:
        """The same model, asked in another way, at no cost: ``sampler``, ``steps``, ``samples``, ``guidance``, ``views``,
        ``seed``, ``decode``, ``kernel_km``, ``registration``, ``width_km``."""
        name, opening, before, within = self._recipe
        native = self._native.with_options(_json(options), None)
        return Model(native, (name, opening, {**before, **options}, within))

    def within(self, *areas: Area) -> Model:
        """The same model for images that were taken in all of these areas. Models that can look more closely there do."""
        name, opening, options, _ = self._recipe
        texts = tuple(area_text(area) for area in areas)
        return Model(self._native.with_options("{}", list(texts)), (name, opening, options, texts))

    # A text is an image by its path, although it is also a sequence of texts.
    @overload
    def locate(self, images: Image, *, name: str | None = None, top: int = 5) -> Answer: ...  # type: ignore[overload-overlap]
    @overload
    def locate(
        self,
        images: Sequence[Image],
        *,
        names: Sequence[str] | None = None,
        top: int = 5,
        errors: Literal["raise"] = "raise",
    ) -> list[Answer]: ...
    @overload
    def locate(
        self,
        images: Sequence[Image],
        *,
        names: Sequence[str] | None = None,
        top: int = 5,
        errors: Literal["return"],
    ) -> list[Answer | Error]: ...

    def locate(
        self,
        images: Any,
        *,
        name: str | None = None,
        names: Sequence[str] | None = None,
        top: int = 5,
        errors: str = "raise",
    ) -> Any:
        """Where an image was taken, or a list of images.

        An image is a path, the bytes of a file, a ``PIL.Image``, or an array of 8-bit pixels. ``top``: candidates at
        most. ``errors="return"``: exceptions stand in the list in place of answers.

        >>> import locdiff
        >>> model = locdiff.open("earth-view")
        >>> [answer.best.country for answer in model.locate(["examples/madagascar.jpg"])]
        ['Madagascar']
        """
        if errors not in ("raise", "return"):
            raise OptionError(f'errors {errors!r}: use "raise" or "return"')
        if not 1 <= top <= 100:
            raise OptionError(f"top is {top}: use 1 to 100")
        one = is_one(images)
        answers = self._native.locate([given(images, name)] if one else all_given(images, names), top)
        if one or errors == "raise":
            for answer in answers:
                if isinstance(answer, Exception):
                    raise answer
        areas = self._recipe[3] or ()
        wrapped = [answer if isinstance(answer, Exception) else Answer(answer, areas) for answer in answers]
        return wrapped[0] if one else wrapped

    def locate_table(self, table: ArrowStream, *, column: str = "image", prefix: str = "", top: int = 5) -> Table:
        """Where the images of a table were taken: a row for each row.

        ``table`` is of any library that speaks Arrow. ``column`` contains images: binary (the bytes of files), text (paths), or
        structs of ``bytes`` and ``path`` as Hugging Face datasets have them. The other columns are kept, and columns of answers
        come with them; ``answer`` is the record of ``locdiff predict --json``. An image without an answer has ``error``, which
        says why. ``prefix`` stands before the names of those columns.
        """
        return Table(self._batches(table, column, prefix, top).collect())

    def locate_batches(
        self, table: ArrowStream, *, column: str = "image", prefix: str = "", top: int = 5
    ) -> Iterator[Table]:
        """Like :meth:`locate_table`, 64 rows at a time: for streams that are larger than memory."""
        for batch in self._batches(table, column, prefix, top):
            yield Table(batch)

    def _batches(self, table: ArrowStream, column: str, prefix: str, top: int) -> _native.Batches:
        if not hasattr(table, "__arrow_c_stream__"):
            raise OptionError(
                f"{type(table).__qualname__} is not a table: give an object with __arrow_c_stream__, such as a pyarrow.Table, "
                "a polars.DataFrame, or a pandas.DataFrame (2.2 or newer, with pyarrow)"
            )
        return self._native.locate_table(table, column, prefix, top)

    def embed(self, images: Image | Sequence[Image]) -> NDArray[np.float32]:
        """What the model's image encoder makes of images, ``[images, width]``."""
        numpy("embed()")
        rows: Any = [images] if is_one(images) else images
        return self._native.embed(all_given(rows))

    def locate_embeddings(self, embeddings: NDArray[np.floating[Any]], *, top: int = 5) -> list[Answer]:
        """Answers for embeddings ``[images, width]`` or ``[images, views, width]`` of the model's encoder."""
        xp = numpy("locate_embeddings()")
        array = xp.asarray(embeddings, "float32")
        array = array[:, None, :] if array.ndim == 2 else array
        if array.ndim != 3:
            raise OptionError(f"embeddings of shape {list(array.shape)}: use [images, width] or [images, views, width]")
        areas = self._recipe[3] or ()
        return [Answer(answer, areas) for answer in self._native.locate_embeddings(array, top)]

    def __reduce__(self) -> tuple[Callable[..., Model], tuple[Any, ...]]:
        return (_reopened, self._recipe)

    def __repr__(self) -> str:
        return f"<locdiff.Model: {self.name} {self.version}>"


def open(
    name: str | os.PathLike[str],
    *,
    device: str = "cpu",
    encoder: str | os.PathLike[str] | None = None,
    home: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    within: Area | Sequence[Area] | None = None,
    progress: Callable[[int, int], object] | None = None,
    **options: Any,
) -> Model:
    """Opens a model: ``"earth-view"`` (built in), ``"geoclip"``, or the directory of a model that was trained.

    ``device``: ``"cpu"``. ``encoder``: the image encoder of a trained model, if it is not an installed one. ``home``: where
    models live (else ``LOCDIFF_HOME``). ``threads``: how many each call computes with, apart from other calls (else all
    processors, shared by all calls). ``within``: an area, or several that must all hold. ``progress`` is called with done
    and total while GeoCLIP's places are encoded, once. Other keywords are those of :meth:`Model.with_options`.

    >>> import locdiff
    >>> locdiff.open("earth-view").name
    'earth-view'
    """
    if threads is not None and threads < 1:
        raise OptionError(f"threads is {threads}: use at least 1")
    opening: dict[str, Any] = {
        "device": device,
        "encoder": None if encoder is None else os.fspath(encoder),
        "home": None if home is None else os.fspath(home),
        "threads": threads,
    }
    native = _native.Model.open(
        os.fspath(name), device, opening["encoder"], opening["home"], threads, _json(options), progress
    )
    model = Model(native, (os.fspath(name), opening, options, None))
    if within is None:
        return model
    return model.within(*within) if isinstance(within, (list, tuple)) else model.within(within)


def _json(options: dict[str, Any]) -> str:
    try:
        return json.dumps(options)
    except TypeError as error:
        raise OptionError(f"options of the model: {error}") from error


def _reopened(name: str, opening: dict[str, Any], options: dict[str, Any], within: tuple[str, ...] | None) -> Model:
    return open(name, **opening, within=within, **options)
