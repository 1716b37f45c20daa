import { type Column, column } from './data-table.js';
import { listAddress } from './list-page.js';
import { Link } from './shown-values.js';

interface ProvedList {
  readonly resource: string;
  readonly last_verified_at: string | null;
}

/** A column of the lists of a company: where the certificates of each are. */
export function certificatesOf<Row extends ProvedList>(company: {
  readonly environment: string;
  readonly company_id: string;
}): Column<Row> {
  const { environment, company_id } = company;
  return column('Certificates', ({ resource, last_verified_at }) =>
    last_verified_at === null ? (
      <span class="none">none</span>
    ) : (
      <Link to={listAddress('/certificates', { environment, company_id, resource })}>
        Show<span class="unseen">: certificates of {resource}</span>
      </Link>
    ),
  );
}
