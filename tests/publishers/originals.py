"""Small files of the very form in which publishers give out their data sets."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import zipfile

import numpy as np
import pandas as pd
from scipy.io import savemat

from fedpca_core.problems.traffic_table import HEADERLESS, SCHEMAS

RNG = np.random.default_rng(0)
#: Images of each class in the small files of MNIST's form: to train, and to test.
EACH, TESTED = 4, 2


def pictures(count, pixels):
    return RNG.integers(0, 256, (count, pixels), dtype=np.uint8)


def idx(values):
    head = struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape)
    return gzip.compress(head + values.tobytes(), mtime=0)


def mnist():
    """The four files, classes in turn, and what they hold."""
    files, held = {}, {}
    for part, each in (("train", EACH), ("t10k", TESTED)):
        classes = np.tile(np.arange(10, dtype=np.uint8), each)
        images = pictures(10 * each, 28 * 28)
        files[f"{part}-images-idx3-ubyte.gz"] = idx(images.reshape(-1, 28, 28))
        files[f"{part}-labels-idx1-ubyte.gz"] = idx(classes)
        held[part] = images, classes
    return files, held


def cifar10():
    """The archive of the binary version: class, red plane, green plane, blue plane."""
    file, held = io.BytesIO(), {}
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name in (*(f"data_batch_{number}.bin" for number in (1, 2)), "test_batch.bin"):
            classes = np.arange(10, dtype=np.uint8)
            planes = pictures(10, 3072)
            content = np.column_stack([classes, planes]).tobytes()
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
            held[name] = planes
    return {"cifar-10-binary.tar.gz": file.getvalue()}, held


def olivetti():
    """Faces as MATLAB has them: a column a picture, pixels column by column."""
    upright = pictures(400, 4096)
    sideways = upright.reshape(400, 64, 64).swapaxes(1, 2).reshape(400, -1)
    file = io.BytesIO()
    savemat(file, {"faces": sideways.T.astype(float), "p": np.zeros((2, 2))})
    return {"olivettifaces.mat": file.getvalue()}, upright


def unsw():
    """Both files under their swapped names: the larger one is called the test set."""
    numeric = SCHEMAS["unsw"].numeric
    tables = []
    for count in (60, 100):
        table = pd.DataFrame(RNG.integers(0, 50, (count, len(numeric))), columns=list(numeric))
        table["dur"] = RNG.random(count)
        for name, words in (("proto", "tcp"), ("service", "-"), ("state", "FIN")):
            table[name] = words
        table["label"] = np.arange(count) % 2
        table["attack_cat"] = np.where(table["label"] == 1, "Exploits", "Normal")
        tables.append(table)
    test, train = tables
    files = {}
    for name, table in (("training", test), ("testing", train)):
        text = table.assign(id=range(len(table))).to_csv(index=False)
        files[f"UNSW_NB15_{name}-set.csv"] = f"\ufeff{text}".encode()
    return files, (train, test)


def ton():
    """Flows with dashes and flags as letters, every tenth twice."""
    schema = SCHEMAS["ton"]
    count = 200
    table = pd.DataFrame({name: RNG.integers(0, 9, count) for name in schema.numeric}, dtype=object)
    table["duration"] = RNG.random(count)
    table["dns_AA"] = np.where(np.arange(count) % 3 == 0, "T", "-")
    table["http_trans_depth"] = "-"
    table["proto"], table["service"], table["conn_state"] = "tcp", "-", "SF"
    table["src_ip"], table["dst_ip"] = "192.168.1.37", "192.168.1.193"
    table["dns_query"] = "example.org"
    table["label"] = np.arange(count) % 2
    table["type"] = np.where(table["label"] == 1, "scanning", "normal")
    table = pd.concat([table, table[::10]], ignore_index=True)
    return {"train_test_network.csv": table.to_csv(index=False).encode()}, table


def nsl():
    """Records without a header, the kind of attack and its difficulty last."""
    files, held = {}, {}
    for name, count in (("KDDTrain+_20Percent.txt", 60), ("KDDTest+.txt", 30)):
        table = pd.DataFrame(
            RNG.integers(0, 9, (count, len(HEADERLESS))), columns=list(HEADERLESS), dtype=object
        )
        table["protocol_type"], table["service"], table["flag"] = "tcp", "http", "SF"
        table["serror_rate"] = 0.25
        table["attack"] = np.where(np.arange(count) % 2, "neptune", "normal")
        files[name] = table.to_csv(index=False, header=False).encode()
        held[name] = table
    return files, held


def beijing():
    """An archive in an archive, a file a station; one day has no measurement of rain."""
    inner, outer = io.BytesIO(), io.BytesIO()
    names = ("PM2.5", "PM10", "SO2", "NO2", "CO", "O3", "TEMP", "PRES", "DEWP", "RAIN", "WSPM")
    with zipfile.ZipFile(inner, "w") as archive:
        for station in ("Changping", "Aotizhongxin"):
            hours = pd.DataFrame({"year": 2013, "month": 3, "day": np.repeat([1, 2, 3], 24)})
            for number, name in enumerate(names):
                hours[name] = np.arange(72.0) + number
            hours.loc[hours["day"] == 3, "RAIN"] = np.nan
            hours["wd"], hours["station"] = "NNW", station
            archive.writestr(f"PRSA_Data_{station}.csv", hours.to_csv(index=False))
    with zipfile.ZipFile(outer, "w") as archive:
        archive.writestr("PRSA2017_Data.zip", inner.getvalue())
        archive.writestr("test.txt", "nothing")
    return {"beijing+multi+site+air+quality+data.zip": outer.getvalue()}, names


ALL = {
    "mnist": mnist, "fashion_mnist": mnist, "cifar10": cifar10, "olivetti": olivetti,
    "unsw": unsw, "ton": ton, "nsl": nsl, "beijing": beijing,
}  # fmt: skip
