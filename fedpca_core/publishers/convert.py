"""From the files that publishers give out to those that the laboratory reads.

Every converter gets the originals by name and returns the finished files by name; what it does not
recognise it refuses, so that a wrong or a cut file never takes the place of a good one.
"""

import gzip
import io
import struct
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fedpca_core.arrays import AnyArray
from fedpca_core.errors import require
from fedpca_core.problems.table_file import readable
from fedpca_core.problems.traffic_table import HEADERLESS, SCHEMAS

#: Contents of the originals by name, and of the finished files.
Files = Mapping[str, bytes]
Made = dict[str, bytes]

#: How many images of each class are kept: to train, and to test.
MNIST_EACH, CIFAR_EACH = 500, (300, 100)
FASHION_KEPT = (10_000, 5_000)
#: Normal flows of TON-IoT that are kept to test, and attacks.
TON_NORMAL_TEST, TON_ATTACKS_TEST = 10_000, 56_557
#: Normal flows of the official UNSW-NB15 test set, as many as the paper tests on, in file order.
UNSW_NORMAL_TEST = 20_000
#: Rows of the publishers' tables: a table that was cut at the end of a line looks whole.
ROWS: Mapping[str, tuple[int, ...]] = {
    "unsw": (82_332, 175_341),
    "ton": (211_043,),
    "nsl": (25_192, 22_544),
    "beijing": (420_768,),
}
CIFAR_NAMES = tuple(
    ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
)
_CIFAR_RECORD = 1 + 3 * 32 * 32


def idx(files: Files, name: str) -> AnyArray:
    """The array in a compressed file of the form that MNIST introduced (uint8)."""
    content = gzip.decompress(files[name])
    zero, kind, dimensions = struct.unpack(">HBB", content[:4])
    require(
        (zero, kind) == (0, 8) and 1 <= dimensions <= 3,
        f"{name} does not begin as an idx file of bytes does; fetch it again.",
    )
    shape = struct.unpack(f">{dimensions}I", content[4 : 4 + 4 * dimensions])
    values = np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions)
    require(
        len(values) == np.prod(shape, dtype=np.int64),
        f"{name} holds {len(values):,} values and promises an array of shape {shape}; "
        "fetch it again.",
    )
    return values.reshape(shape)


def _idx_pairs(files: Files) -> Iterator[tuple[AnyArray, AnyArray]]:
    """Flat images and their classes: to train, then to test."""
    for part in ("train", "t10k"):
        images, classes = (
            idx(files, f"{part}-{kind}-ubyte.gz") for kind in ("images-idx3", "labels-idx1")
        )
        require(
            images.ndim == 3 and images.shape[1:] == (28, 28) and len(images) == len(classes),
            f"The {part} files hold images of shape {images.shape} and {len(classes)} classes; "
            "there must be one class for each image of 28 × 28 pixels.",
        )
        yield images.reshape(len(images), -1), classes


def _first_of_each(classes: AnyArray, count: int) -> AnyArray:
    places = [np.flatnonzero(classes == label)[:count] for label in range(10)]
    fewest = min(map(len, places))
    require(
        fewest == count,
        f"One of the ten classes has only {fewest} images, and {count} of each are kept; "
        "fetch the file again.",
    )
    return np.concatenate(places)


def _npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def mnist(files: Files) -> Made:
    """The first 500 of each digit, sorted, and the whole test set."""
    (images, classes), (tested, truth) = _idx_pairs(files)
    kept = _first_of_each(classes, MNIST_EACH)
    made = _npz(X_train=images[kept], y_train=classes[kept], X_test=tested, y_test=truth)
    return {"mnist.npz": made}


def fashion_mnist(files: Files) -> Made:
    """The first 10,000 and 5,000 images."""
    (images, classes), (tested, truth) = _idx_pairs(files)
    train, test = FASHION_KEPT
    made = _npz(
        X_train=images[:train], y_train=classes[:train], X_test=tested[:test], y_test=truth[:test]
    )
    return {"fashion_mnist.npz": made}


def cifar10(files: Files) -> Made:
    """The first 300 and 100 of each class from the binary version, sorted, channels last."""
    parts: dict[str, list[AnyArray]] = {"data_batch": [], "test_batch": []}
    with tarfile.open(fileobj=io.BytesIO(files["cifar-10-binary.tar.gz"])) as archive:
        for member in sorted(archive.getmembers(), key=lambda one: one.name):
            name = Path(member.name)
            part = name.stem if name.stem == "test_batch" else name.stem.rpartition("_")[0]
            content = archive.extractfile(member)
            if name.suffix == ".bin" and part in parts and content is not None:
                values = np.frombuffer(content.read(), np.uint8)
                parts[part].append(values.reshape(-1, _CIFAR_RECORD))
    arrays: dict[str, AnyArray] = {}
    for (part, batches), suffix, count in zip(
        parts.items(), ("train", "test"), CIFAR_EACH, strict=True
    ):
        require(bool(batches), f"The archive holds no {part}; fetch the binary version.")
        records = np.concatenate(batches)
        kept = records[_first_of_each(records[:, 0], count)]
        # One colour plane after the other becomes one colour beside the other.
        planes = kept[:, 1:].reshape(len(kept), 3, -1)
        arrays[f"X_{suffix}"] = planes.swapaxes(1, 2).reshape(len(kept), -1)
        arrays[f"y_{suffix}"] = kept[:, 0]
    return {"cifar10_subset.npz": _npz(**arrays, class_names=np.array(CIFAR_NAMES))}


def olivetti(files: Files) -> Made:
    """All faces upright, ten of a person one after the other."""
    from scipy.io.matlab import MatReadError, loadmat

    file: Any = io.BytesIO(files["olivettifaces.mat"])
    try:
        faces = loadmat(file, variable_names=["faces"])["faces"]
    except MatReadError as error:
        raise ValueError(error) from None
    require(
        faces.shape == (64 * 64, 400),
        f"The file holds faces of shape {faces.shape}, not (4096, 400); fetch it again.",
    )
    # MATLAB stores a picture column by column.
    upright = faces.T.reshape(400, 64, 64).swapaxes(1, 2).reshape(400, -1)
    people = np.repeat(np.arange(40, dtype=np.uint8), 10)
    return {"olivetti_faces.npz": _npz(X=np.rint(upright).astype(np.uint8), subject=people)}


def _csv(files: Files, name: str, columns: tuple[str, ...], **options: Any) -> pd.DataFrame:
    table = pd.read_csv(io.BytesIO(files[name]), low_memory=False, encoding="utf-8-sig", **options)
    missing = [column for column in columns if column not in table]
    require(
        not missing,
        f"{name} lacks the columns {', '.join(missing[:5])}; it is not the publisher's file.",
    )
    return table


def _complete(key: str, *tables: pd.DataFrame) -> None:
    found = tuple(map(len, tables))
    here, there = (" and ".join(f"{rows:,}" for rows in counts) for counts in (found, ROWS[key]))
    require(
        found == ROWS[key],
        f"There are {here} rows, and the publisher's release has {there}; fetch it again.",
    )


def _stored(table: pd.DataFrame) -> bytes:
    """As Parquet: texts as categories, fractions in 32 bits, whole numbers as small as they are."""
    small: dict[Any, Any] = {}
    for name, cells in table.items():
        if cells.dtype.kind == "f":
            small[name] = cells.astype(np.float32)
        elif cells.dtype.kind in "iu":
            low = cells.min()
            small[name] = pd.to_numeric(cells, downcast="unsigned" if low >= 0 else "signed")
        elif cells.dtype.kind == "b":
            small[name] = cells
        else:
            small[name] = cells.astype("string").astype("category")
    return bytes(pd.DataFrame(small).to_parquet(index=False, compression="zstd"))


def unsw(files: Files) -> Made:
    """Normal flows of the larger file to train, and the whole smaller file to test.

    The names of the two released files have been swapped; their sizes tell them apart.
    """
    needed = (*SCHEMAS["unsw"].numeric, "proto", "service", "state")
    tables = [_csv(files, name, (*needed, "attack_cat", "label")) for name in files]
    test, train = sorted(tables, key=len)
    _complete("unsw", test, train)
    normal = train.loc[train["label"] == 0, list(needed)].reset_index(drop=True)
    kept = test[[*needed, "attack_cat", "label"]].copy()
    kept["attack_cat"] = kept["attack_cat"].str.strip()
    rank = (kept["label"] == 0).cumsum()
    kept["paper_test"] = (kept["label"] == 1) | (rank <= UNSW_NORMAL_TEST)
    return {
        "unsw_nb15_train_normal.parquet": _stored(normal),
        "unsw_nb15_test.parquet": _stored(kept),
    }


def ton(files: Files) -> Made:
    """All flows, with a column that says which are kept to train and to test.

    Duplicates are marked; of the others the normal flows to test and the attacks to test are drawn
    at random (seed 0), and the remaining normal flows are there to train.
    """
    schema = SCHEMAS["ton"]
    (name,) = files
    table = _csv(files, name, (*schema.needed, "src_ip", "dst_ip", "type", "label"), dtype=str)
    _complete("ton", table)
    numbers = schema.values(table, name)[:, : len(schema.numeric)]
    made = pd.DataFrame(numbers, columns=list(schema.numeric))
    whole = [name for name in schema.numeric if np.array_equal(made[name] % 1, made[name] * 0)]
    made[whole] = made[whole].astype(np.int64)
    for name in ("proto", "service", "conn_state", "src_ip", "dst_ip", "type"):
        made[name] = table[name].str.strip()
    made["service"] = made["service"].replace("-", "none")
    made["label"] = table["label"].astype(np.int64)
    split = np.where(made.duplicated([*schema.needed, "label"]), "dup", "rest").astype(object)
    generator = np.random.default_rng(0)
    for label, most, others in ((0, TON_NORMAL_TEST, "train"), (1, TON_ATTACKS_TEST, "rest")):
        places = np.flatnonzero((made["label"] == label) & (split == "rest"))
        split[places] = others
        split[generator.choice(places, most, replace=False)] = "test"
    return {"ton_iot_network.parquet": _stored(made.assign(split=split))}


def nsl(files: Files) -> Made:
    """The official 20 % to train and the official test set, one below the other."""
    parts = []
    for name, split in (("KDDTrain+_20Percent.txt", "train20"), ("KDDTest+.txt", "test")):
        part = pd.read_csv(io.BytesIO(files[name]), header=None)
        require(
            part.shape[1] == len(HEADERLESS),
            f"{name} holds {part.shape[1]} columns, not {len(HEADERLESS)}; fetch it again.",
        )
        parts.append(part.set_axis(list(HEADERLESS), axis=1).assign(split=split))
    _complete("nsl", *parts)
    table = pd.concat(parts, ignore_index=True)
    table["label"] = (table["attack"] != "normal").astype(np.int64)
    return {"nsl_kdd.parquet": _stored(table)}


def beijing(files: Files) -> Made:
    """Hourly measurements of every station as means of days; a day without one is left out."""
    (archive,) = files.values()
    tables = [pd.read_csv(io.BytesIO(content)) for content in _tables_in(archive)]
    columns = ["station", "year", "month", "day", *_AIR]
    hours = pd.concat([table[columns] for table in tables], ignore_index=True)
    _complete("beijing", hours)
    hours["date"] = pd.to_datetime(hours[["year", "month", "day"]]).dt.strftime("%Y-%m-%d")
    means = hours.groupby(["station", "date"], as_index=False)[list(_AIR)].mean().dropna()
    return {"beijing_air_daily.csv": means.round(2).to_csv(index=False).encode()}


_AIR = ("PM2.5", "PM10", "SO2", "NO2", "CO", "O3", "TEMP", "PRES", "DEWP", "RAIN", "WSPM")


def _tables_in(content: bytes) -> Iterator[bytes]:
    """The CSV files of an archive, or of the archives in it."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for name in sorted(archive.namelist()):
            if name.endswith(".csv"):
                yield archive.read(name)
            elif name.endswith(".zip"):
                yield from _tables_in(archive.read(name))


#: By key of the data set.
CONVERTERS: Mapping[str, Callable[[Files], Made]] = {
    one.__name__: one for one in (mnist, fashion_mnist, cifar10, olivetti, unsw, ton, nsl, beijing)
}


def converted(key: str, files: Files) -> Made:
    """The files of a data set; refused where an original is not what it should be."""
    remedy = ": cut or damaged on its way, or another file; fetch it again."
    with readable(f"{' and '.join(files)} cannot be read", remedy):
        return CONVERTERS[key](files)
