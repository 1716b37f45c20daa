/** A record of a company's list. */
export interface RecordPlace {
  readonly environment: string;
  readonly company_id: string;
  readonly resource: string;
  readonly id: string;
}

/** The page of a record. Browsers take `.` and `..` out of a path, so that such an id is in the query. */
export function recordPath({ environment, company_id, resource, id }: RecordPlace): string {
  const list = `/records/${environment}/${company_id}/${resource}`;
  const part = encodeURIComponent(id);
  return /^\.{0,2}$/.test(id) ? `${list}?id=${part}` : `${list}/${part}`;
}

/** The page that asks before a record is erased. */
export function erasePath({ environment, company_id, ...record }: RecordPlace): string {
  return `/companies/${environment}/${company_id}/forget?${new URLSearchParams({ resource: record.resource, id: record.id })}`;
}
