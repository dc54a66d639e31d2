"""Every public data set of the laboratory: what it is for, whose it is, and where it is found here.

What comes with the package is always found. The others lie in the folder of data files, where the
command `COMMAND` puts them; nothing but that command ever asks for something over a network.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

from fedpca_core.errors import InvalidInput, require

#: The environment variable that names another folder of data files.
FOLDER_VARIABLE = "FEDPCA_DATA"
#: What lists the data sets and fetches them.
COMMAND = "python -m fedpca_core data"
_BUNDLED = "fedpca_core.problems.bundled"
#: The folder's name below the place where a system keeps a user's data.
_OURS = "federated-pca-laboratory"


@dataclass(frozen=True)
class Original:
    """One file as its publisher gives it out."""

    #: How it is called there.
    name: str
    #: Where it is; empty where the publisher gives it out through a page, a form or a login.
    address: str = ""
    #: Its checksum; empty where none is known.
    sha256: str = ""
    megabytes: float = 0.0


@dataclass(frozen=True)
class DataSet:
    """One data set."""

    #: key, name, title: In settings and links; for the command; on screen.
    key: str
    name: str
    title: str
    #: What it is for here.
    purpose: str
    #: What is kept of it.
    holds: str
    licence: str
    citation: str
    #: The publisher's page about it.
    page: str
    #: As they are called in the folder of data files; none: another package brings the data.
    files: tuple[str, ...] = ()
    #: Files of the package that stand for them, by the checksums (SHA-256) of their content.
    bundled: Mapping[str, str] = field(default_factory=dict)
    #: What the bundled files hold, where that is less than the files in the folder.
    sample: str = ""
    #: What it is made of.
    originals: tuple[Original, ...] = ()
    #: Key of a data set that comes with the laboratory and serves the same purpose.
    instead: str = ""

    @property
    def comes_along(self) -> bool:
        """Whether it is there wherever the laboratory is, at least as a sample."""
        return bool(self.bundled) or not self.files

    @property
    def by_form(self) -> bool:
        """Whether its publisher gives it out through a page, where no program can fetch it."""
        return bool(self.originals) and not all(one.address for one in self.originals)

    @property
    def megabytes(self) -> float:
        """Of everything that has to be fetched."""
        return sum(one.megabytes for one in self.originals)


@dataclass(frozen=True)
class Found:
    """Where a data set lies: its files, and whether they are those of the package."""

    files: tuple[Path, ...]
    bundled: bool


class MissingData(InvalidInput):
    """A data set is not on this machine; ``key`` says which."""

    def __init__(self, key: str) -> None:
        one = DATA_SETS[key]
        instead = DATA_SETS.get(one.instead)
        otherwise = f", or choose {instead.title}, which is here" if instead else ""
        super().__init__(
            f"“{one.title}” is not on this machine: “{COMMAND} {one.name}” "
            f"{'says where to get it' if one.by_form else 'fetches it'}{otherwise}."
        )
        self.key = key


_CC_BY = "CC BY 4.0"
_UNSW = "free for academic research with citation; commercial use by agreement"
_IDX = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)


def _idx(host: str, *about: tuple[str, float]) -> tuple[Original, ...]:
    """The four files of MNIST and of what has its form, by checksum and size."""
    return tuple(
        Original(name, f"{host}/{name}", sha256, megabytes)
        for name, (sha256, megabytes) in zip(_IDX, about, strict=True)
    )


DATA_SETS: Mapping[str, DataSet] = {
    one.key: one
    for one in (
        DataSet(
            key="digits",
            name="digits",
            title="Digits",
            purpose="images, also where a client holds few of them",
            holds="1,797 images of 8 × 8 pixels in 10 classes",
            licence=_CC_BY,
            citation="E. Alpaydin, C. Kaynak, “Optical Recognition of Handwritten Digits”, UCI "
            "Machine Learning Repository, 1998. doi:10.24432/C50P49",
            page="https://archive.ics.uci.edu/dataset/80",
        ),
        DataSet(
            key="fashion_mnist",
            name="fashion-mnist",
            title="Fashion-MNIST",
            purpose="images of garments",
            holds="the first 10,000 and 5,000 images of 28 × 28 pixels in 10 classes",
            licence="MIT",
            citation="H. Xiao, K. Rasul, R. Vollgraf, “Fashion-MNIST: a novel image dataset for "
            "benchmarking machine learning algorithms”, 2017. arXiv:1708.07747",
            page="https://github.com/zalandoresearch/fashion-mnist",
            files=("fashion_mnist.npz",),
            bundled={
                "fashion_mnist_sample.npz": (
                    "8b321d3c2f98afef968307d885eb0597c375629308252fd28a4decbd4184ae5d"
                )
            },
            sample="a sample of 2,000 images",
            originals=_idx(
                "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
                ("3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84", 26.4),
                ("a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845", 0.1),
                ("346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073", 4.4),
                ("67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5", 0.1),
            ),
        ),
        DataSet(
            key="mnist",
            name="mnist",
            title="MNIST",
            purpose="images of digits, finer than those of scikit-learn",
            holds="500 images of each digit to train and 10,000 to test, 28 × 28 pixels",
            licence="CC BY-SA 3.0, as it is usually given",
            citation="Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, “Gradient-based learning applied "
            "to document recognition”, Proc. IEEE 86(11), 1998. doi:10.1109/5.726791",
            page="https://yann.lecun.com/exdb/mnist/",
            files=("mnist.npz",),
            originals=_idx(
                "https://storage.googleapis.com/cvdf-datasets/mnist",
                ("440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609", 9.9),
                ("3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c", 0.1),
                ("8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6", 1.6),
                ("f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6", 0.1),
            ),
            instead="digits",
        ),
        DataSet(
            key="cifar10",
            name="cifar10",
            title="CIFAR-10",
            purpose="photographs of ten kinds of things",
            holds="300 colour images of each class to train and 100 to test, 32 × 32 pixels",
            licence="none stated; for research, with citation",
            citation="A. Krizhevsky, “Learning multiple layers of features from tiny images”, "
            "University of Toronto, 2009",
            page="https://www.cs.toronto.edu/~kriz/cifar.html",
            files=("cifar10_subset.npz",),
            originals=(
                Original(
                    "cifar-10-binary.tar.gz",
                    "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                    "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
                    170.1,
                ),
            ),
            instead="fashion_mnist",
        ),
        DataSet(
            key="olivetti",
            name="olivetti",
            title="Olivetti faces",
            purpose="photographs of forty people, ten of each: the natural client is a person",
            holds="400 images of 64 × 64 pixels",
            licence="for research, with credit to AT&T Laboratories Cambridge; real people",
            citation="F. Samaria, A. Harter, “Parameterisation of a stochastic model for human "
            "face identification”, WACV 1994. doi:10.1109/ACV.1994.341300",
            page="https://cam-orl.co.uk/facedatabase.html",
            files=("olivetti_faces.npz",),
            originals=(
                Original(
                    "olivettifaces.mat",
                    "https://ndownloader.figshare.com/files/5976027",
                    "b612fb967f2dc77c9c62d3e1266e0c73d5fca46a4b8906c18e454d41af987794",
                    4.3,
                ),
            ),
            instead="fashion_mnist",
        ),
        DataSet(
            key="iot23",
            name="iot-23",
            title="IoT-23",
            purpose="network traffic of devices, with attacks",
            holds="44,527 flows with 8 numeric features",
            licence=_CC_BY,
            citation="S. Garcia, A. Parmisano, M. J. Erquiaga, “IoT-23: A labeled dataset with "
            "malicious and benign IoT network traffic”, Zenodo, 2020. doi:10.5281/zenodo.4743746",
            page="https://www.stratosphereips.org/datasets-iot23",
            files=("iot23_authors.parquet",),
            bundled={
                "iot23_authors.parquet": (
                    "17c350f7a1a3e410c64ddb3fcffdaf8f7b4bcb750ef10223cdff6a79ac871e82"
                )
            },
        ),
        DataSet(
            key="ton",
            name="ton-iot",
            title="TON-IoT",
            purpose="network traffic with attacks; one of the two sets of the FedPG paper",
            holds="211,043 flows with 24 numeric features and 3 categories",
            licence=_UNSW,
            citation="N. Moustafa, “A new distributed architecture for evaluating AI-based "
            "security systems at the edge: Network TON_IoT datasets”, Sustainable Cities and "
            "Society 72, 2021. doi:10.1016/j.scs.2021.102994",
            page="https://research.unsw.edu.au/projects/toniot-datasets",
            files=("ton_iot_network.parquet",),
            originals=(Original("train_test_network.csv", megabytes=30),),
            instead="iot23",
        ),
        DataSet(
            key="unsw",
            name="unsw",
            title="UNSW-NB15",
            purpose="network traffic with attacks; one of the two sets of the FedPG paper",
            holds="56,000 normal flows to train and 82,332 to test, 39 numeric features",
            licence=_UNSW,
            citation="N. Moustafa, J. Slay, “UNSW-NB15: a comprehensive data set for network "
            "intrusion detection systems”, MilCIS 2015. doi:10.1109/MilCIS.2015.7348942",
            page="https://research.unsw.edu.au/projects/unsw-nb15-dataset",
            files=("unsw_nb15_train_normal.parquet", "unsw_nb15_test.parquet"),
            originals=(
                Original("UNSW_NB15_training-set.csv", megabytes=32),
                Original("UNSW_NB15_testing-set.csv", megabytes=15),
            ),
            instead="iot23",
        ),
        DataSet(
            key="nsl",
            name="nsl-kdd",
            title="NSL-KDD",
            purpose="network traffic with attacks",
            holds="25,192 records to train and 22,544 to test, 34 numeric features",
            licence="redistribution with citation",
            citation="M. Tavallaee, E. Bagheri, W. Lu, A. A. Ghorbani, “A detailed analysis of the "
            "KDD CUP 99 data set”, CISDA 2009. doi:10.1109/CISDA.2009.5356528",
            page="https://www.unb.ca/cic/datasets/nsl.html",
            files=("nsl_kdd.parquet",),
            originals=(
                Original("KDDTrain+_20Percent.txt", megabytes=4),
                Original("KDDTest+.txt", megabytes=3),
            ),
            instead="iot23",
        ),
        DataSet(
            key="heart",
            name="heart",
            title="Heart disease by hospital",
            purpose="a table whose natural client is a hospital",
            holds="920 patients of four hospitals, 13 features",
            licence=_CC_BY,
            citation="A. Janosi, W. Steinbrunn, M. Pfisterer, R. Detrano, “Heart Disease”, UCI "
            "Machine Learning Repository, 1989. doi:10.24432/C52P4X",
            page="https://archive.ics.uci.edu/dataset/45/heart+disease",
            files=("heart_disease_by_hospital.csv",),
            bundled={
                "heart_disease_by_hospital.csv": (
                    "76d70512a93b12713698a5e86786a52d855937f2c4ddfd632e2ba7fdff551378"
                )
            },
        ),
        DataSet(
            key="beijing",
            name="beijing",
            title="Beijing air, daily",
            purpose="a table whose natural client is a station; to bring as a file of one's own",
            holds="about 17,000 days at 12 stations, 11 features",
            licence=_CC_BY,
            citation="S. Chen, “Beijing Multi-Site Air Quality”, UCI Machine Learning Repository, "
            "2017. doi:10.24432/C5RK5G",
            page="https://archive.ics.uci.edu/dataset/501/beijing+multi+site+air+quality+data",
            files=("beijing_air_daily.csv",),
            originals=(
                Original(
                    "beijing+multi+site+air+quality+data.zip",
                    "https://archive.ics.uci.edu/static/public/501/"
                    "beijing+multi+site+air+quality+data.zip",
                    megabytes=8,
                ),
            ),
            instead="heart",
        ),
    )
}


def data_folder(folder: str | os.PathLike[str] | None = None) -> Path:
    """The folder of data files: the one given, else the one FEDPCA_DATA names, else the user's."""
    named = os.environ.get(FOLDER_VARIABLE, "") if folder is None else os.fspath(folder)
    if named:
        return Path(named)
    from platformdirs import user_data_path

    return user_data_path(_OURS, appauthor=False)


def find(
    key: str, folder: str | os.PathLike[str] | None = None, *, whole: bool = False
) -> Found | None:
    """Where the files of a data set are: in the folder of data files, else in the package.

    A sample that comes along counts, unless the ``whole`` set is asked for.

    Raises InvalidInput: an unknown key.
    """
    require(
        key in DATA_SETS,
        f"There is no data set called {key!r}; choose one of {', '.join(DATA_SETS)}.",
    )
    one = DATA_SETS[key]
    root = data_folder(folder)
    stored = tuple(root / name for name in one.files)
    if all(path.is_file() for path in stored):
        return Found(stored, bundled=not stored)
    if one.bundled and not (whole and one.sample):
        package = Path(str(resources.files(_BUNDLED)))
        return Found(tuple(package / name for name in one.bundled), bundled=True)
    return None


def require_here(keys: Iterable[str], *, whole: bool = False) -> None:
    """Refuse before any work is done where a data set is missing, or is a sample only.

    Raises MissingData: the first of ``keys`` that is not on this machine, and the command that
    helps.
    """
    for key in keys:
        if find(key, whole=whole) is None:
            raise MissingData(key)


def files_of(key: str, folder: str | os.PathLike[str] | None = None) -> tuple[Path, ...]:
    """The files of a data set.

    Raises InvalidInput: an unknown key, or files that are not on this machine (`MissingData`).
    """
    found = find(key, folder)
    if found is None:
        raise MissingData(key)
    return found.files
