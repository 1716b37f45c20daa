"""dlt as its documentation begins: the rest_api source, its own normalizer and loader, one resource a company, rows merged by key."""

import json
import os

import dlt
from dlt.sources.rest_api import rest_api_source

companies = json.loads(os.environ["COMPANIES"])
page_size = int(os.environ["PAGE_SIZE"])


def resource(company: str) -> dict:
    return {
        "name": f"employees_{company[-4:]}",
        "table_name": "employees",
        "primary_key": "uid",
        "write_disposition": "merge",
        "endpoint": {
            "path": f"api/companies/{company}/employees",
            "data_selector": "data",
            "paginator": {
                "type": "offset",
                "limit": page_size,
                "offset_param": "skip",
                "limit_param": "$take",
                "total_path": "totalRecords",
            },
        },
    }


source = rest_api_source(
    {
        "client": {"base_url": os.environ["PROVIDER_URL"] + "/", "auth": {"type": "bearer", "token": "token"}},
        "resources": [resource(company) for company in companies],
    }
)
pipeline = dlt.pipeline(
    "dlt_defaults",
    pipelines_dir=os.environ["STATE"],
    destination=dlt.destinations.postgres(os.environ["DATABASE_URL"]),
    dataset_name="dlt_defaults",
)
pipeline.run(source).raise_on_failed_jobs()
