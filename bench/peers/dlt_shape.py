"""One night of a list into PostgreSQL, as dlt's documentation begins: the rest_api source, rows merged by key, nested arrays as child tables.

Companies share the ids of their people, so the company is added to each record, and is a part of the key.
"""

import json
import os

import dlt
from dlt.sources.rest_api import rest_api_source

list_name = os.environ["LIST"]


def resource(company: str) -> dict:
    def with_company(record: dict) -> dict:
        return {"company_id": company, **record}

    return {
        "name": f"{list_name}_{company[-4:]}",
        "table_name": list_name,
        "primary_key": ["company_id", os.environ["KEY"]],
        "write_disposition": "merge",
        "processing_steps": [{"map": with_company}],
        "endpoint": {
            "path": f"api/companies/{company}/{list_name}",
            "data_selector": "data",
            "paginator": {
                "type": "offset",
                "limit": 500,
                "offset_param": "skip",
                "limit_param": "take",
                "total_path": "totalRecords",
            },
        },
    }


source = rest_api_source(
    {
        "client": {"base_url": os.environ["SERVICE_URL"]},
        "resources": [resource(company) for company in json.loads(os.environ["COMPANIES"])],
    }
)
pipeline = dlt.pipeline(
    list_name,
    pipelines_dir=os.environ["STATE"],
    destination=dlt.destinations.postgres(os.environ["DATABASE_URL"]),
    dataset_name="dlt",
)
pipeline.run(source).raise_on_failed_jobs()
