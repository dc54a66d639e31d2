"""CSV files as they come: separators, encodings, decimal marks, and everything that is not one."""

import numpy as np
import pytest

from fedpca_core.errors import InvalidInput
from fedpca_core.problems import read_csv

PLAIN = "name,height,weight\nanna,1.5,60\nbert,1.75,82.5\n"


@pytest.mark.parametrize(
    ("content", "reading"),
    [
        (PLAIN.encode(), ""),
        (PLAIN.encode("utf-8-sig"), ""),
        (PLAIN.replace("\n", "\r\n").encode(), ""),
        (PLAIN.replace(",", ";").encode(), "semicolons"),
        (PLAIN.replace(",", "\t").encode(), "tabs"),
        (PLAIN.replace(",", "|").encode(), "bars"),
        (PLAIN.replace(",", ";").replace(".", ",").encode(), "semicolons, decimal commas"),
        (PLAIN.replace(",", " , ").encode(), ""),
        (PLAIN.encode("utf-16"), "encoded as utf-16"),
        (("\n" + PLAIN).encode(), ""),
    ],
)
def test_the_same_table_in_many_dresses(content, reading):
    frame = read_csv(content)
    assert list(frame.columns) == ["name", "height", "weight"]
    np.testing.assert_array_equal(frame["height"], [1.5, 1.75])
    np.testing.assert_array_equal(frame["weight"], [60, 82.5])
    assert reading in frame.attrs["reading"]
    assert bool(frame.attrs["reading"]) == bool(reading)


def test_accents_in_an_old_encoding():
    frame = read_csv("città,größe\nForlì,3\nKöln,4\n".encode("cp1252"))
    assert list(frame.columns) == ["città", "größe"]
    assert "cp1252" in frame.attrs["reading"]


def test_quoted_separators_are_text():
    frame = read_csv(b'place,size\n"Rome, Italy; south",3\n"Bari, Italy; south",4\n')
    assert list(frame["place"]) == ["Rome, Italy; south", "Bari, Italy; south"]


def test_marks_of_missing_values():
    frame = read_csv(b"a,b\n1,?\n-,2\nNA,3\n4,\n")
    assert frame["a"].isna().sum() == 2
    assert frame["b"].isna().sum() == 2
    assert frame.select_dtypes("number").shape[1] == 2


def test_a_file_without_header_keeps_its_first_record():
    frame = read_csv(b"1.5,2,9\n3,4,9\n5,6,9\n")
    assert frame.shape == (3, 3)
    assert list(frame.columns) == ["column 1", "column 2", "column 3"]
    assert "no header line" in frame.attrs["reading"]
    counted = read_csv(b"0,1,2\n1.5,2,9\n3,4,9\n")  # what pandas writes for unnamed columns
    assert list(counted.columns) == ["0", "1", "2"]
    years = read_csv(b"2010,2011,2012\n1.5,2,9\n3,4,9\n")
    assert list(years.columns) == ["2010", "2011", "2012"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty"),
        (b" \n\n ", "is empty"),
        (b"a,b\n", "a header but no records"),
        (b"PK\x03\x04rest of a workbook", "a spreadsheet or zip archive, not text; save it as CSV"),
        (b"PAR1....", "a Parquet file"),
        (bytes(range(256)) * 4, "not a text file"),
        (b"a,b\n1,2\n1,2,3\n", "not a table .* same number of cells"),
        (b"a,b\n1,2,3\n4,5,6\n", "not a table"),
        (b'a,b\n1,"2\n3,4\n', "not a table"),
    ],
)
def test_what_is_not_a_table_is_refused(content, sentence):
    with pytest.raises(InvalidInput, match=f"^upload.csv.*{sentence}"):
        read_csv(content, "upload.csv")
