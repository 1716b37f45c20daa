"""A tap as Singer's SDK has one write it: a stream with a partition a company, paged by offset. Messages go to standard output."""

import json
import os

from singer_sdk import RESTStream, Tap
from singer_sdk import typing as th
from singer_sdk.authenticators import BearerTokenAuthenticator
from singer_sdk.pagination import BaseOffsetPaginator

PAGE_SIZE = int(os.environ["PAGE_SIZE"])
TEXTS = (
    "employeeNumber firstName lastName email mobile title departmentId managerId employmentType hireDate birthDate currency "
    "address city country bankAccount taxCard costCenter updatedAt"
).split()


class Pages(BaseOffsetPaginator):
    def has_more(self, response) -> bool:
        return self.current_value + self._page_size < response.json()["totalRecords"]


class Employees(RESTStream):
    name = "employees"
    url_base = os.environ["PROVIDER_URL"]
    path = "/api/companies/{company}/employees"
    records_jsonpath = "$.data[*]"
    primary_keys = ("uid",)
    partitions = [{"company": company} for company in json.loads(os.environ["COMPANIES"])]
    schema = th.PropertiesList(
        th.Property("uid", th.StringType, required=True),
        *(th.Property(name, th.StringType) for name in TEXTS),
        th.Property("active", th.BooleanType),
        th.Property("salary", th.NumberType),
        th.Property("hoursPerWeek", th.NumberType),
        th.Property("vacationDays", th.NumberType),
        th.Property("pension", th.NumberType),
    ).to_dict()

    @property
    def authenticator(self):
        return BearerTokenAuthenticator(token="token")

    def get_new_paginator(self):
        return Pages(start_value=0, page_size=PAGE_SIZE)

    def get_url_params(self, context, next_page_token):
        return {"skip": next_page_token or 0, "$take": PAGE_SIZE}


class EmployeesTap(Tap):
    name = "tap-employees"
    config_jsonschema = th.PropertiesList().to_dict()

    def discover_streams(self):
        return [Employees(self)]


EmployeesTap.cli()
