"""dlt as somebody writes it who knows it well: pages as deferred calls side by side, Arrow tables, and a loader without dlt's own rows.

usage: dlt_expert.py csv|parquet   (parquet is loaded through ADBC)
"""

import json
import os
import sys

import dlt
import pyarrow as pa
import requests

loader = sys.argv[1]
companies = json.loads(os.environ["COMPANIES"])
page_size = int(os.environ["PAGE_SIZE"])
base = os.environ["PROVIDER_URL"]
session = requests.Session()
session.headers["authorization"] = "Bearer token"


def page_of(company: str, skip: int) -> dict:
    answer = session.get(f"{base}/api/companies/{company}/employees", params={"skip": skip, "$take": page_size})
    answer.raise_for_status()
    return answer.json()


@dlt.resource(name="employees", primary_key="uid", write_disposition="merge")
def employees():
    for company in companies:
        first = page_of(company, 0)

        def table(rows: list) -> pa.Table:
            return pa.Table.from_pylist(rows)

        yield table(first["data"])
        for skip in range(page_size, first["totalRecords"], page_size):

            @dlt.defer
            def fetch(skip=skip, company=company):
                return table(page_of(company, skip)["data"])

            yield fetch()


pipeline = dlt.pipeline(
    f"dlt_expert_{loader}",
    pipelines_dir=os.environ["STATE"],
    destination=dlt.destinations.postgres(os.environ["DATABASE_URL"]),
    dataset_name=f"dlt_expert_{loader}",
)
pipeline.run(employees(), loader_file_format=loader).raise_on_failed_jobs()
