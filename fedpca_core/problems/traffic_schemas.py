"""The four public intrusion data sets: which columns they have and what becomes of each.

A file is recognised by its columns alone. Features are numeric; categories become one column for
each known level, so that any release of a data set gives the same features.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd

from fedpca_core.arrays import Array, BoolArray, IntArray
from fedpca_core.errors import InvalidInput, require

_UNSW = (
    "dur spkts dpkts sbytes dbytes rate sttl dttl sload dload sloss dloss sinpkt dinpkt sjit djit "
    "swin stcpb dtcpb dwin tcprtt synack ackdat smean dmean trans_depth response_body_len "
    "ct_srv_src ct_state_ttl ct_dst_ltm ct_src_dport_ltm ct_dst_sport_ltm ct_dst_src_ltm "
    "is_ftp_login ct_ftp_cmd ct_flw_http_mthd ct_src_ltm ct_srv_dst is_sm_ips_ports"
)
_TON = (
    "src_port dst_port duration src_bytes dst_bytes missed_bytes src_pkts src_ip_bytes dst_pkts "
    "dst_ip_bytes dns_qclass dns_qtype dns_rcode dns_AA dns_RD dns_RA dns_rejected ssl_resumed "
    "ssl_established http_trans_depth http_request_body_len http_response_body_len "
    "http_status_code weird_notice"
)
_TON_FLAGS = "dns_AA dns_RD dns_RA dns_rejected ssl_resumed ssl_established weird_notice"
_NSL_ALL = (
    "duration protocol_type service flag src_bytes dst_bytes land wrong_fragment urgent hot "
    "num_failed_logins logged_in num_compromised root_shell su_attempted num_root "
    "num_file_creations num_shells num_access_files num_outbound_cmds is_host_login "
    "is_guest_login count srv_count serror_rate srv_serror_rate rerror_rate srv_rerror_rate "
    "same_srv_rate diff_srv_rate srv_diff_host_rate dst_host_count dst_host_srv_count "
    "dst_host_same_srv_rate dst_host_diff_srv_rate dst_host_same_src_port_rate "
    "dst_host_srv_diff_host_rate dst_host_serror_rate dst_host_srv_serror_rate "
    "dst_host_rerror_rate dst_host_srv_rerror_rate"
)
_NSL_LEFT_OUT = "protocol_type service flag land logged_in is_host_login is_guest_login"
_IOT23 = (
    "duration orig_bytes resp_bytes missed_bytes orig_pkts orig_ip_bytes resp_pkts resp_ip_bytes"
)

#: NSL-KDD's own files have no header; its columns in order.
HEADERLESS = (*_NSL_ALL.split(), "attack", "difficulty")

_NORMAL_WORDS = ("normal", "benign", "0", "0.0", "false", "-")


def _distinct(cells: pd.Series) -> tuple[IntArray, list[str]]:
    """Codes of all cells and the few distinct texts they stand for."""
    codes, values = pd.factorize(cells, use_na_sentinel=False)
    return codes.astype(np.int64), [str(value).strip() for value in values]


@dataclass(frozen=True)
class Schema:
    """Columns of one data set."""

    #: key, title: Short name in configurations, and name on screen.
    key: str
    title: str
    #: Numeric features in order.
    numeric: tuple[str, ...]
    #: Feature by which the paper sorts records before cutting them into clients.
    split_key: str
    #: label_columns, type_columns: Where the label (normal or attack) and the attack's type stand;
    #: the first found counts.
    label_columns: tuple[str, ...]
    type_columns: tuple[str, ...]
    #: mapping of column to levels: One indicator feature for each level.
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: Texts that stand for a number in any numeric column.
    tokens: Mapping[str, float] = field(default_factory=dict)
    #: Columns in which a dash means "does not apply" (-1) rather than 0.
    flags: tuple[str, ...] = ()

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """Names of all features, indicator columns last."""
        levels = [
            f"{column}={level}" for column, values in self.categories.items() for level in values
        ]
        return (*self.numeric, *levels)

    @property
    def needed(self) -> tuple[str, ...]:
        """Columns without which a file is not recognised."""
        return (*self.numeric, *self.categories)

    def values(self, table: pd.DataFrame, file: str, *, strict: bool = True) -> Array:
        """All features of some rows; NaN where a cell is empty or, where not strict, holds text.

        Raises InvalidInput: text in a numeric column; the sentence quotes it and its row.
        """
        result = np.zeros((len(table), len(self.feature_names)))
        for index, column in enumerate(self.numeric):
            result[:, index] = self._numbers(table[column], column, file, strict)
        index = len(self.numeric)
        for column, levels in self.categories.items():
            codes, texts = _distinct(table[column])
            known = np.array(["none" if text == "-" else text for text in texts], dtype=object)
            for level in levels:
                result[:, index] = (known == level)[codes]
                index += 1
        return result

    def _numbers(self, cells: pd.Series, column: str, file: str, strict: bool) -> Array:
        if cells.dtype.kind in "fiub":
            return cells.to_numpy(dtype=float)
        texts = cells.astype("string").str.strip()
        tokens = {**self.tokens, "-": -1.0 if column in self.flags else 0.0}
        numbers = pd.to_numeric(texts, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
        for token, value in tokens.items():
            numbers[(texts == token).to_numpy(dtype=bool, na_value=False)] = value
        empty = texts.isna() | (texts == "")
        text = np.isnan(numbers) & ~empty.to_numpy(dtype=bool)
        text &= (texts.str.casefold() != "nan").to_numpy(dtype=bool, na_value=False)
        if strict and text.any():
            row = int(np.flatnonzero(text)[0])
            raise InvalidInput(
                f"Column '{column}' of {file} holds text where numbers are expected "
                f"(“{str(texts.iloc[row])[:40]}” in record {row + 1}); "
                "correct or delete these records."
            )
        return numbers

    def spelled(self, table: pd.DataFrame) -> pd.DataFrame:
        """A table of this data set with its columns in the usual capitals."""
        usual = (*self.needed, *self.label_columns, *self.type_columns)
        names = {name.casefold(): name for name in usual}
        return table.set_axis([names.get(c.casefold(), c) for c in table.columns], axis=1)

    def labelled(self, table: pd.DataFrame) -> bool:
        """Whether a table holds one of the data set's columns of labels."""
        return any(name in table for name in (*self.label_columns, *self.type_columns))

    def labels(self, table: pd.DataFrame) -> tuple[BoolArray, np.ndarray]:
        """Whether each row is an attack, and its type as text ("normal" for normal rows)."""
        label = next((name for name in self.label_columns if name in table), None)
        type_ = next((name for name in self.type_columns if name in table), None)
        attack, types, _ = attacks_in(table[label or type_])
        if label is not None and type_ is not None:
            codes, words = _distinct(table[type_])
            types = np.array(words, dtype=object)[codes]
            types[~attack] = "normal"
        return attack, types


def attacks_in(
    labels: pd.Series, normal_value: str = "", *, guess: bool = False
) -> tuple[BoolArray, np.ndarray, str]:
    """Whether each label means an attack, its type as text, and how that was decided.

    Parameters
    ----------
    normal_value : str
        The label of normal records; "" takes the words that usually stand for it.
    guess : bool
        Whether the most frequent of several labels is taken, and said, where there is none of
        these words.

    Raises
    ------
    InvalidInput
        That label does not occur.
    """
    codes, words = _distinct(labels)
    said = ""
    # Zeek's labels read "Malicious   C&C": what follows the gap is the type.
    normal = [re.split(r"\s{2,}", word.casefold())[0] in _NORMAL_WORDS for word in words]
    if normal_value:
        require(
            normal_value in words,
            f"No record has the label “{normal_value}”; the labels are {', '.join(words[:8])}.",
        )
        normal = [word == normal_value for word in words]
    elif guess and not any(normal) and len(words) > 1:
        common = int(np.bincount(codes).argmax())
        normal = [code == common for code in range(len(words))]
        said = f"Its most frequent label, “{words[common]}”, counts as normal."
    attack: BoolArray = ~np.array(normal, dtype=bool)[codes]
    coded = all(word in ("0", "1", "0.0", "1.0", "True", "False") for word in words)
    types = np.where(attack, "attack" if coded else np.array(words, dtype=object)[codes], "normal")
    return attack, types.astype(object), said


SCHEMAS: dict[str, Schema] = {
    schema.key: schema
    for schema in (
        Schema(
            key="unsw",
            title="UNSW-NB15",
            numeric=tuple(_UNSW.split()),
            split_key="ct_srv_src",
            label_columns=("label",),
            type_columns=("attack_cat",),
        ),
        Schema(
            key="ton",
            title="TON-IoT",
            numeric=tuple(_TON.split()),
            split_key="src_port",
            label_columns=("label",),
            type_columns=("type",),
            categories={
                "proto": ("icmp", "tcp", "udp"),
                "service": tuple(
                    ["dce_rpc", "dns", "ftp", "gssapi", "http", "none", "smb", "smb;gssapi", "ssl"]
                ),
                "conn_state": tuple(
                    [
                        "OTH",
                        "REJ",
                        "RSTO",
                        "RSTOS0",
                        "RSTR",
                        "RSTRH",
                        "S0",
                        "S1",
                        "S2",
                        "S3",
                        "SF",
                        "SH",
                        "SHR",
                    ]
                ),
            },
            tokens={"F": 0.0, "T": 1.0, "f": 0.0, "t": 1.0, "False": 0.0, "True": 1.0},
            flags=tuple(_TON_FLAGS.split()),
        ),
        Schema(
            key="nsl",
            title="NSL-KDD",
            numeric=tuple(n for n in _NSL_ALL.split() if n not in _NSL_LEFT_OUT.split()),
            split_key="dst_bytes",
            label_columns=("label", "class", "attack"),
            type_columns=("attack", "attack_type", "type"),
        ),
        Schema(
            key="iot23",
            title="IoT-23",
            numeric=tuple(_IOT23.split()),
            split_key="duration",
            label_columns=("label",),
            type_columns=("detailed-label", "detailed_label"),
        ),
    )
}


def recognise(columns: Iterable[str]) -> Schema | None:
    """The data set all of whose columns are there (upper and lower case are the same), if any."""
    present = {column.casefold() for column in columns}
    complete = [
        schema
        for schema in SCHEMAS.values()
        if {column.casefold() for column in schema.needed} <= present
    ]
    # The widest that fits: IoT-23's few columns may also stand in a wider table.
    return max(complete, key=lambda schema: len(schema.needed), default=None)
