"""Reads the Parquet files of a folder as one table with pyarrow, and prints its rows as JSON: night, id, salary, bonus, bonus_on."""

import json
import sys
from decimal import Decimal
from pathlib import Path

import pyarrow
import pyarrow.dataset
import pyarrow.parquet

files = sorted(Path(sys.argv[1]).glob("night-*.parquet"))
# Without promotion: a column that has another type in one file than in another is an error.
schema = pyarrow.unify_schemas([pyarrow.parquet.read_schema(file) for file in files])
dataset = pyarrow.dataset.dataset([str(file) for file in files], schema=schema)
table = dataset.to_table(columns=["__filename", "id", "salary", "salary__text", "bonus", "bonus_on"])


def text(value):
    if value is None:
        return None
    return format(value, "f") if isinstance(value, Decimal) else str(value)


rows = [
    [
        Path(row["__filename"]).stem.removeprefix("night-"),
        row["id"],
        row["salary__text"] if row["salary"] is None else text(row["salary"]),
        text(row["bonus"]),
        text(row["bonus_on"]),
    ]
    for row in table.to_pylist()
]
print(json.dumps({"rows": sorted(rows), "columns": {field.name: str(field.type) for field in schema}}))
